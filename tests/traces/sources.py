"""A few rows in each layout that is read, all made up; each holds a job of 8 GPUs that ran an hour."""

from __future__ import annotations

import json

NEUTRAL = """job_id,group,user,submit_s,duration_s,gpus,gpu_type,state,model,min_runtime_s,resumable,kind
a,vision,ann,60,3600,8,h100|a100,completed,resnet,1800,0,train
b,language,,0,30,1,,,,,,debug
"""
SACCT = """JobID|JobName|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|ReqTRES|AllocTRES|Constraints
10|train|ann|vision|gpu|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T11:05:00|3600|cpu=8,gres/gpu=8|cpu=8,gres/gpu:h100=8,gres/gpu=8,node=1|h100|a100
10.batch|batch||vision||COMPLETED|2026-03-01T10:05:00|2026-03-01T10:05:00|2026-03-01T11:05:00|3600||cpu=8,gres/gpu=8|
11|cpu only|bob|language|cpu|COMPLETED|2026-03-01T10:00:10|2026-03-01T10:00:20|2026-03-01T10:00:30|10|cpu=8|cpu=8|
12_3|array|bob|language|gpu|CANCELLED by 7|2026-03-01T10:00:20|2026-03-01T10:00:20|2026-03-01T10:10:20|600|gres/gpu=2|gres/gpu=2|
12_[4-9%1]|array|bob|language|gpu|PENDING|2026-03-01T10:00:20|Unknown|Unknown|0|cpu=1,gres/gpu=2||
13|runs|bob|language|gpu|RUNNING|2026-03-01T10:00:30|2026-03-01T10:00:30|Unknown|4000|cpu=1,gres/gpu=1|cpu=1,gres/gpu=1|
"""
SWF = """; Version: 2.2
; UnixStartTime: 1000000000
; Queue: 3 long
1 0 10 3600 8 -1 -1 8 7200 -1 1 5 2 -1 3 -1 -1 -1
2 5 -1 60 -1 -1 -1 2 -1 -1 0 6 2 -1 -1 -1 -1 -1
3 9 -1 -1 4 -1 -1 4 -1 -1 5 6 2 -1 3 -1 -1 -1
"""
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
h1,ua,vcA,8,32,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 01:00:20,3600,10
h2,ub,vcB,0,4,1,COMPLETED,2020-04-01 00:00:11,2020-04-01 00:00:21,2020-04-01 00:00:31,10,10
h3,ub,vcB,1,4,1,TIMEOUT,2020-04-01 00:00:12,2020-04-01 00:00:22,2020-04-01 00:01:22,60,10
"""
ALIBABA = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-1,1000,1024,8,1000,GPU9|TPU9,LS,Succeeded,100,3800,200
pod-2,1000,1024,1,250,,BE,Failed,50,170,110
pod-3,1000,1024,1,1000,,BE,Pending,60,190,
pod-4,1000,1024,0,0,,BE,Running,60,190,70
"""
PHILLY = json.dumps(
    [
        {
            "jobid": "application_1",
            "vc": "vc1",
            "user": "u1",
            "status": "Pass",
            "submitted_time": "2017-10-01 00:00:00",
            "attempts": [
                {
                    "start_time": "2017-10-01 00:01:00",
                    "end_time": "2017-10-01 00:31:00",
                    "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3"]}],
                },
                {
                    "start_time": "2017-10-01 01:00:00",
                    "end_time": "2017-10-01 01:30:00",
                    "detail": [{"ip": f"m{i}", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3"]} for i in (1, 2)],
                },
            ],
        },
        {"jobid": "application_2", "vc": "vc1", "user": "u1", "status": "Killed", "submitted_time": "2017-10-01 00:00:01",
         "attempts": []},
    ]
)  # fmt: skip


def sacct_json(wrapped: bool) -> str:
    """Two jobs as `sacct --json` prints them; `wrapped`: as newer data parsers do."""

    def n(value: int) -> object:
        return {"set": True, "infinite": False, "number": value} if wrapped else value

    def job(number: int, state: str, start: int, tres: list, task: object = None) -> dict:
        return {
            "job_id": number, "account": "vision", "user": "ann", "partition": "gpu", "qos": "normal", "cluster": "c",
            "array": {"job_id": 0 if task is None else 77, "task_id": task if task is not None else n(0)},
            "state": {"current": [state] if wrapped else state, "reason": "None"},
            "time": {"submission": n(1_700_000_000), "start": n(start), "elapsed": n(3_600), "end": n(0)},
            "tres": {"allocated": tres, "requested": [{"type": "gres", "name": "gpu", "count": n(4)}]},
        }  # fmt: skip

    held = [
        {"type": "cpu", "name": "", "count": n(8)},
        {"type": "gres", "name": "gpu:h100", "count": n(8)},
        {"type": "gres", "name": "gpu", "count": n(8)},
    ]
    jobs = [
        job(1, "COMPLETED", 1_700_000_060, held),
        job(2, "FAILED", 1_700_000_060, [], n(5) if wrapped else 5),
        job(3, "PENDING", 0, []),
    ]
    return json.dumps({"jobs": jobs, "meta": {}})

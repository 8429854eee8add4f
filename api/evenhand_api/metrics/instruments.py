"""The service's instruments: one registry a service, nothing global."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenhand_api.metrics.figures import Figures
from evenhand_api.metrics.owed import OwedRow

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
GAPS = (0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Metrics:
    """What is counted while the service runs. Labels are closed lists, clusters, and groups of their trees."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._requests = self._counter("requests", "Requests answered.", "route", "method", "status")
        self._request_s = self._histogram("request_seconds", "From a request's head to its answer.", SECONDS, "route")
        self._rounds = self._counter("rounds", "Rounds decided, by the certificate's status.", "cluster", "status")
        self._round_s = self._histogram(
            "round_seconds", "A round, waiting for a free process left out.", SECONDS, "cluster"
        )
        self._stage_s = self._histogram("round_stage_seconds", "Stages of a round.", SECONDS, "stage")
        self._gap = self._histogram(
            "round_gap", "How much more a plan could be worth, as a share of the target's throughput.", GAPS, "cluster"
        )
        self._cut = self._counter("rounds_cut_by_time", "Rounds whose search the time limit cut short.", "cluster")
        self._fallbacks = self._counter("fallbacks", "Rounds answered by the greedy plan.", "cluster")
        self._audit_failures = self._counter("audit_failures", "Plans that failed their audit: defects.", "cluster")
        self._actions = self._counter("actions", "Jobs by what was decided about them.", "cluster", "action")
        self._preemptions = self._counter("preemptions", "Jobs preempted.", "cluster")
        self._refused = self._counter("refused", "Rounds refused because the queue was full.")
        self._lost = self._counter("processes_lost", "Processes that died or overran, and were replaced.")
        self._renewed = self._counter("processes_renewed", "Processes replaced because they held too much memory.")

    def watch(self, gauges: Callable[[], Iterable[tuple[str, str, float]]]) -> None:
        """Let a function say what is so now, whenever it is asked for: name, meaning, value."""
        self._registry.register(_Now(gauges))

    def watch_owed(self, rows: Callable[[], Iterable[OwedRow]]) -> None:
        """Let a function say what groups were owed and received."""
        self._registry.register(_Owed(rows))

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._request_s.labels(route).observe(seconds)

    def round(self, figures: Figures, seconds: float) -> None:
        """Count a round; a stored answer that was asked for again is none."""
        if figures.again:
            return
        name = figures.cluster
        self._rounds.labels(name, figures.status).inc()
        self._round_s.labels(name).observe(seconds)
        for stage, ms in figures.stages_ms.items():
            self._stage_s.labels(stage).observe(ms / 1_000)
        if figures.gap is not None:
            self._gap.labels(name).observe(figures.gap)
        self._cut.labels(name).inc(figures.cut_by_time)
        self._fallbacks.labels(name).inc(figures.status == "fallback")
        self._audit_failures.labels(name).inc(figures.audit_failed)
        for action, jobs in figures.actions.items():
            self._actions.labels(name, action).inc(jobs)
        self._preemptions.labels(name).inc(figures.actions.get("preempt", 0))

    def refused(self) -> None:
        """Count a request for which there was no room."""
        self._refused.inc()

    def process_lost(self) -> None:
        """Count a process that died or overran."""
        self._lost.inc()

    def process_renewed(self) -> None:
        """Count a process that held too much memory."""
        self._renewed.inc()

    def written(self) -> bytes:
        """Write everything in Prometheus's text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"evenhand_{name}", meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"evenhand_{name}", meaning, labels, buckets=buckets, registry=self._registry)


class _Now(Collector):
    def __init__(self, gauges: Callable[[], Iterable[tuple[str, str, float]]]) -> None:
        self._gauges = gauges

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        for name, meaning, value in self._gauges():
            yield GaugeMetricFamily(f"evenhand_{name}", meaning, value=value)


class _Owed(Collector):
    def __init__(self, rows: Callable[[], Iterable[OwedRow]]) -> None:
        self._rows = rows

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        labels = ["cluster", "group"]
        over = "over the last metrics_owed_hours hours up to the last round"
        owed = GaugeMetricFamily("evenhand_owed_gpu_hours", f"Charged GPU-hours owed {over}.", labels=labels)
        received = GaugeMetricFamily(
            "evenhand_received_gpu_hours", f"Charged GPU-hours received {over}.", labels=labels
        )
        for row in self._rows():
            owed.add_metric([row.cluster, row.group], row.owed)
            received.add_metric([row.cluster, row.group], row.received)
        yield owed
        yield received

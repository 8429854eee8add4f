"""All runs of a sweep: what is finished is taken from the store, the rest is replayed and kept as it finishes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from evenhand_api.whatif.pools import Pool
from evenhand_api.whatif.runs import Base, Run, check_runs, run_key
from evenhand_api.whatif.store import Store

Progress = Callable[[float, int, int], None]
"""Called with the share of all runs that is done, how many are finished, and of how many."""


def sweep(
    base: Base, runs: Sequence[Run], pool: Pool, store: Store, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Replay all runs that are not finished yet; results in the order of the runs.

    The same runs make the same results by any pool, by any number of workers, killed and resumed or not.

    Raises
    ------
    InvalidInput
        If a scenario does not fit the base; nothing is replayed then.
    Failure
        If runs were lost; finished ones are kept.
    """
    check_runs(base, list(runs))
    digest = base.digest()
    keys = [run_key(digest, run) for run in runs]
    todo = {key: run for key, run in zip(keys, runs, strict=True) if store.get(key) is None}
    shares = {key: 0.0 if key in todo else 1.0 for key in keys}

    def tell() -> None:
        if progress is not None:
            finished = sum(share >= 1.0 and store.get(key) is not None for key, share in shares.items())
            progress(sum(shares.values()) / max(1, len(shares)), finished, len(shares))

    def done(key: str, result: bytes) -> None:
        store.put(key, result)
        shares[key] = 1.0
        tell()

    def going(key: str, share: float) -> None:
        shares[key] = max(shares[key], min(share, 0.999))
        tell()

    tell()
    if todo:
        pool.run(base, list(todo.items()), done, going)
    return [json.loads(store.get(key) or b"null") for key in keys]

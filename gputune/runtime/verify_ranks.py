"""Checks over the job's own c10d store that all ranks of a job compute with the same settings, as torch reads them.

Data parallelism exchanges only gradients and assumes that replicas stay identical; a rank with another precision
silently makes them drift apart. No collective is used: it would hang where a rank is missing, while a store is polled
until a deadline.

Source: PyTorch, "Distributed communication package", distributed key-value store.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from gputune import knobs
from gputune.errors import RankError, UsageError
from gputune.facts.environment import TF32_OVERRIDE

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

Values = dict[str, Any]

POLL_SECONDS = (0.002, 0.05)
"""The first and the longest pause between two polls. Pauses double, because thousands of ranks may poll one store."""
LONGEST_SECONDS = 86_400.0
NAMING_SECONDS = 2.0
"""The time allowed after the deadline for asking the store, rank by rank, which ones are missing."""
SHOWN = 8
"""The most ranks that a message lists."""

_ALIVE = "see whether rank 0 is alive"
_calls = count()


def verify_ranks(tuning: Tuning | None, deadline_seconds: float) -> Values:
    """As `gputune.verify_ranks`. Raises UsageError where there are several ranks but no process group, too."""
    if not 0 < deadline_seconds <= LONGEST_SECONDS:
        raise UsageError(f"verify_ranks: a deadline of {deadline_seconds} s", f"name one up to {LONGEST_SECONDS:g} s")
    mine = effective(tuning)
    place = _place()
    if place is None:
        return mine
    outcome: list[RankError | None] = []
    asking = threading.Thread(target=_run, args=(outcome, place, mine, deadline_seconds), daemon=True)
    asking.start()
    asking.join(deadline_seconds + NAMING_SECONDS)  # a store whose server is gone may not answer at all
    fault = outcome[0] if outcome else RankError(f"the job's store gave no answer in {deadline_seconds:g} s", _ALIVE)
    if fault:
        raise fault
    return mine


def effective(tuning: Tuning | None = None) -> Values:
    """Torch's version, its current flags, what overrules them, and what was put into this process's models."""
    import torch

    from gputune.runtime.in_process import rows_now

    values: Values = {"torch": str(torch.__version__), TF32_OVERRIDE: os.environ.get(TF32_OVERRIDE)}
    put_in = {row.setting: row.after for row in rows_now().values() if row.status == "applied"}
    for name, setting in knobs.all_knobs().items():
        if setting.PHASE == "process":
            try:
                values[name] = setting.current()
            except Exception as error:  # a getter that raises also distinguishes this rank from others
                values[name] = type(error).__name__
        elif setting.PHASE == "code" and setting.NUMERICS != "exact":
            own = {name: tuning.choice(name)} if tuning is not None else {}
            values |= {name: put_in[name]} if name in put_in else own
    return values


def _place() -> tuple[Any, int, int] | None:
    """The store, this rank and the number of ranks; None for a job of a single process."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size()
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise UsageError(
            f"verify_ranks: there is no process group, and WORLD_SIZE={os.environ['WORLD_SIZE']}",
            "call torch.distributed.init_process_group first",
        )
    return None


def _run(outcome: list[RankError | None], place: tuple[Any, int, int], mine: Values, seconds: float) -> None:
    try:
        _compare(place, mine, seconds)
        outcome.append(None)
    except RankError as error:
        outcome.append(error)
    except Exception as error:
        outcome.append(RankError(f"the job's store failed: {type(error).__name__}: {error}", _ALIVE))


def _compare(place: tuple[Any, int, int], mine: Values, seconds: float) -> None:
    """The store holds each rank's values, a count for each digest of values, and a count of ranks that have arrived.
    Ranks that all agree read only the two counts.
    """
    store, rank, ranks = place
    deadline = time.monotonic() + seconds
    prefix = f"gputune/ranks/{next(_calls)}"
    text = json.dumps(mine, sort_keys=True)
    alike = f"{prefix}/alike/{hashlib.sha256(text.encode()).hexdigest()}"
    store.set(f"{prefix}/{rank}", text)
    store.add(alike, 1)
    store.add(f"{prefix}/arrived", 1)
    pause, longest = POLL_SECONDS
    while store.add(f"{prefix}/arrived", 0) < ranks:
        if time.monotonic() >= deadline:
            absent = (other for other in range(ranks) if not store.check([f"{prefix}/{other}"]))
            missing = list(islice(absent, SHOWN + 1))
            more = " and more" if missing[SHOWN:] else ""
            message = f"{_list(missing[:SHOWN])}{more} did not answer within {seconds:g} s"
            raise RankError(message, "every rank has to call verify_ranks")
        time.sleep(pause)
        pause = min(2 * pause, longest)
    if store.add(alike, 0) < ranks:
        by_rank = {other: json.loads(store.get(f"{prefix}/{other}")) for other in range(ranks)}
        raise RankError(difference(by_rank), "give every rank the same profile and environment")


def difference(by_rank: Mapping[int, Values]) -> str:
    """Which ranks differ from the most frequent values, and how; of equally frequent ones, the lowest rank's count."""
    keys = {rank: json.dumps(values, sort_keys=True) for rank, values in by_rank.items()}
    counted = Counter(keys[rank] for rank in sorted(keys))
    usual = next(rank for rank in sorted(keys) if keys[rank] == counted.most_common(1)[0][0])
    odd = [rank for rank in sorted(keys) if keys[rank] != keys[usual]]
    words = []
    for name in sorted({name for values in by_rank.values() for name in values}):
        value = repr(by_rank[usual].get(name))
        others = list(dict.fromkeys(repr(by_rank[rank].get(name)) for rank in odd))
        if others != [value]:
            words.append(f"{name} is {' or '.join(others)}, and {value} in {counted[keys[usual]]} others")
    return f"{_list(odd)} differ{'s' if len(odd) == 1 else ''}: {'; '.join(words)}"


def _list(ranks: list[int]) -> str:
    more = f" and {len(ranks) - SHOWN} more" if len(ranks) > SHOWN else ""
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks[:SHOWN]))}{more}"

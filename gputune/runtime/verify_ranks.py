"""Whether all ranks of a job compute with the same settings, as torch reads them: over the job's own c10d store, without collectives.

Replicas are taken to stay alike because only gradients are exchanged; a rank in another precision makes them drift apart, silently.
A collective would hang where a rank is missing; a store is only written and read, and polled until a deadline.

Source: PyTorch, "Distributed communication package", distributed key-value store.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from gputune import settings
from gputune.errors import RankError, UsageError
from gputune.facts.environment import TF32_OVERRIDE

if TYPE_CHECKING:
    from gputune.runtime.tuning import Tuning

Values = dict[str, Any]

POLL_SECONDS = (0.002, 0.05)
"""From the first look to the last, each twice as long: thousands of ranks ask one store."""
LONGEST_SECONDS = 86_400.0
NAMING_SECONDS = 2.0
"""For asking the store who is missing, one by one."""
SHOWN = 8
"""How many ranks a message names one by one."""

_ALIVE = "see whether rank 0 is alive"
_calls = count()


def verify_ranks(tuning: Tuning | None, deadline_seconds: float) -> Values:
    """Compare what this rank computes with to all others of the default process group; returns what they agree on.

    With `tuning`, what its lines give the script is compared too. Every rank has to call it, as often as the others. Raises
    RankError that names the ranks which differ, or did not answer until the deadline; UsageError where there are several
    ranks and no process group.
    """
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
    """What decides about this process's results: torch and its flags, read back, and what overrides them."""
    import torch

    found: Values = {"torch": str(torch.__version__), TF32_OVERRIDE: os.environ.get(TF32_OVERRIDE)}
    for name, setting in settings.all_settings().items():
        if setting.PHASE == "process":
            found[name] = _current(setting)
        elif tuning is not None and setting.PHASE == "code" and setting.NUMERICS != "exact":
            found[name] = tuning.value(name)
    return found


def _current(setting: Any) -> Any:
    try:
        return setting.current()
    except Exception as error:  # a getter that raises is a state of its own, and tells a rank apart
        return f"{type(error).__name__}"


def _place() -> tuple[Any, int, int] | None:
    """The store, this rank and the number of ranks; None for a job of one process."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        store = dist.distributed_c10d._get_default_store()
        return store, dist.get_rank(), dist.get_world_size()
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
    """In the store: each rank's values, how many there are of each digest, and how many have come. Alike ranks read no more than the
    two counts.
    """
    store, rank, ranks = place
    deadline = time.monotonic() + seconds
    prefix = f"gputune/ranks/{next(_calls)}"
    text = json.dumps(mine, sort_keys=True)
    alike = f"{prefix}/alike/{hashlib.sha256(text.encode()).hexdigest()}"
    store.set(f"{prefix}/{rank}", text)
    store.add(alike, 1)
    store.add(f"{prefix}/come", 1)
    if not _until(lambda: store.add(f"{prefix}/come", 0) >= ranks, deadline):
        absent = (one for one in range(ranks) if not store.check([f"{prefix}/{one}"]))
        missing = list(islice(absent, SHOWN + 1))
        more = " and more" if missing[SHOWN:] else ""
        said = f"{_named(missing[:SHOWN])}{more} did not answer within {seconds:g} s"
        raise RankError(said, "every rank has to call verify_ranks")
    if store.add(alike, 0) < ranks:
        told = {one: json.loads(store.get(f"{prefix}/{one}")) for one in range(ranks)}
        raise RankError(difference(told), "give every rank the same profile and environment")


def _until(done: Callable[[], bool], deadline: float) -> bool:
    pause, longest = POLL_SECONDS
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return True


def difference(told: Mapping[int, Values]) -> str:
    """In what ranks differ from most others, in words; where two values are as frequent, from that of the lowest rank."""
    keys = {rank: json.dumps(values, sort_keys=True) for rank, values in told.items()}
    counted = Counter(keys[rank] for rank in sorted(keys))
    usual = next(rank for rank in sorted(keys) if keys[rank] == counted.most_common(1)[0][0])
    odd = [rank for rank in sorted(keys) if keys[rank] != keys[usual]]
    names = sorted(
        {name for rank in odd for name in told[usual] | told[rank] if _differs(told[rank], told[usual], name)}
    )
    words = [
        f"{name} is {_each(told, odd, name)}, and {told[usual].get(name)!r} in {counted[keys[usual]]} others"
        for name in names
    ]
    return f"{_named(odd)} differ{'s' if len(odd) == 1 else ''}: {'; '.join(words)}"


def _differs(one: Values, other: Values, name: str) -> bool:
    return bool(one.get(name) != other.get(name))


def _each(told: Mapping[int, Values], odd: list[int], name: str) -> str:
    values = dict.fromkeys(repr(told[rank].get(name)) for rank in odd)
    return " or ".join(values)


def _named(ranks: list[int]) -> str:
    more = f" and {len(ranks) - SHOWN} more" if len(ranks) > SHOWN else ""
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks[:SHOWN]))}{more}"

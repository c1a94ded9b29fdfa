"""Which benches are run, in which order, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gputune import benches
from gputune.bench_process import BUDGETS, Budget
from gputune.errors import UsageError
from gputune.probing.request import ALL, OPTIONS, Request


@dataclass(frozen=True, slots=True)
class Job:
    """One bench of the plan, and what its Context is to hold."""

    bench: str
    seconds: float
    budget: Budget
    options: Mapping[str, Any]

    @property
    def request(self) -> dict[str, Any]:
        return {
            "bench": benches.load(self.bench).__name__,
            "seconds": self.seconds,
            "budget": self.budget,
            **self.options,
        }

    def is_(self, what: str) -> bool:
        """Whether its bench says so of itself: USER_CODE, OF_THE_HOST, SIDE_BY_SIDE."""
        return bool(getattr(benches.load(self.bench), what, False))


def check_names(request: Request) -> None:
    """Raises UsageError for a budget or bench that there is not, or not for this request."""
    if request.budget not in BUDGETS:
        raise UsageError(f"--budget {request.budget}: there is no such budget", f"choose from {', '.join(BUDGETS)}")
    known = benches.names()
    for name in request.only:
        if name not in known:
            raise UsageError(f"--only {name}: there is no such bench", f"choose from {', '.join(known)}")
        if getattr(benches.load(name), "SIDE_BY_SIDE", False) and request.device != ALL:
            raise UsageError(f"--only {name}: holds the GPUs of a node against each other", f"add --device {ALL}")
        option = getattr(benches.load(name), "OPTION", None)
        if option is None or option in request.options:
            continue
        if option not in OPTIONS:
            raise UsageError(f"--only {name}: is no part of a probe", f"use gputune {name.replace('_', '-')}")
        raise UsageError(f"--only {name}: measures what --{option} names", f"add --{option} {OPTIONS[option]}")


def plan(device: str, request: Request) -> list[Job]:
    """The benches in order and their seconds. One that was asked for by name gets time also where the budget has none for it;
    one of what only the user can name is there when it was named, with its seconds for each; one that holds GPUs against each
    other where all are measured.
    """
    jobs = []
    for name in benches.names():
        option = getattr(benches.load(name), "OPTION", None)
        if option not in (None, *request.options):
            continue
        count = len(request.options[option]) if option else 1
        seconds = count * _seconds(name, device, request.budget, wanted=name in request.only)
        job = Job(name, seconds, request.budget, request.options)
        if job.is_("SIDE_BY_SIDE") and request.device != ALL:
            continue
        if name in request.only or (seconds and not request.only):
            jobs.append(job)
    return jobs


def _seconds(name: str, device: str, budget: Budget, *, wanted: bool) -> float:
    from_here = BUDGETS[BUDGETS.index(budget) :] if wanted else (budget,)
    return next((seconds for one in from_here if (seconds := benches.seconds(name, device, one))), 0.0)

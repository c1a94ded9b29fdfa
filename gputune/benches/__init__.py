"""One microbenchmark a file, run in a worker process. Facts in, Measurements out.

A bench's file has a docstring (`gputune explain NAME`), and

- `SECONDS`: how long it may measure, by kind of device and budget; 0 leaves it out of that budget;
- `RANK`: the most valuable is measured first (1);
- `needs(facts, device)`: why it cannot run here, or None;
- `measure(context)`: yields Measurements as it has them, and a Gap for what could not be measured.

A bench of what only the user can name says so with `OPTION`, the field of its Context that it needs; its `SECONDS` are for each.
One of a probe that runs the user's code says that with `USER_CODE`: the next bench then gets a fresh process. Where all GPUs of
a node are measured at once, one with `OF_THE_HOST` measures the host and is run once, alone; one with `SIDE_BY_SIDE` holds the
GPUs against each other, and is run only there.

Files whose name starts with an underscore are what they share.
"""

from __future__ import annotations

from typing import cast

from gputune import plugins
from gputune.bench_process import Budget
from gputune.facts import Facts


def torch_missing(facts: Facts) -> str | None:
    """Why torch cannot be used, or None. Every bench needs it."""
    if facts.libraries.torch:
        return None
    reasons = (gap.reason for gap in facts.gaps if gap.fact == "libraries.torch")
    return next(reasons, "torch is not installed")


def names() -> list[str]:
    """Every bench's name, which is its file's, the most valuable first."""
    return sorted(plugins.names(__name__), key=lambda name: (load(name).RANK, name))


def load(name: str) -> plugins.Bench:
    """The module of one bench. Raises KeyError for a name that is none."""
    return cast(plugins.Bench, plugins.load(__name__, name))


def seconds(name: str, device: str, budget: Budget) -> float:
    """A bench's share of a budget on a kind of device."""
    return float(load(name).SECONDS["cuda" if device.startswith("cuda") else "cpu"][budget])

"""Processes of `gputune apply auto` that start at once, as a scheduler starts them. The probe is a stand-in: it writes
its pid down, waits for the file GATE, and returns a profile that tells who measured it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from making import environ, until

PROBE = """
import os, runpy, sys, time
from making import profile
from gputune import probing
from gputune.errors import MeasureError
from gputune.host import Host, node_lock
from gputune.progress import Progress
from gputune.runtime.local_fingerprint import local_fingerprint

def probe(request, **options):
    with open(os.environ["PROBES"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    if tell := options.get("progress"):
        tell(Progress(part="standing in", number=1, count=2))
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.02)
    if os.environ.get("PROBE_FAILS"):
        raise MeasureError("nothing could be measured", "see: gputune check")
    if options.get("cached") and (before := options["cached"](local_fingerprint(Host()))):
        print("before:", before.settings["omp_threads"].value, file=sys.stderr)
    return profile({"omp_threads": os.getpid() % 4000 + 1}, fingerprint=local_fingerprint(Host()))

probing.probe = probe
if "NODE" in os.environ:
    node_lock.this_node = lambda: os.environ["NODE"]
sys.argv[0] = "gputune"
runpy.run_module("gputune", run_name="__main__")
"""

SHOW = [sys.executable, "-c", "import os; print(os.environ.get('GPUTUNE_APPLY'))"]

Rank = subprocess.Popen[str]


def variables(folder: Path, cache: Path | str) -> dict[str, str]:
    """For a gputune whose probe is the stand-in, with this XDG_CACHE_HOME. What it writes down is in the folder."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    probes = str(folder / "probes")
    return environ(XDG_CACHE_HOME=str(cache), PROBES=probes, GATE="/", GPUTUNE_PROBE="missing", PYTHONPATH=path)


@contextmanager
def started(env: dict[str, str], count: int = 8, before: Sequence[str] = ()) -> Iterator[list[Rank]]:
    """So many of them, each below the words `before`; what is left at the end is killed."""
    words = [*before, sys.executable, "-c", PROBE, "apply", "auto", "--", *SHOW]
    ranks = [
        subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def probes(env: dict[str, str]) -> list[int]:
    """The pids of those that have probed or do so now, in order."""
    path = Path(env["PROBES"])
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def split(env: dict[str, str], ranks: list[Rank]) -> tuple[Rank, list[Rank]]:
    """The one that probes, and the others once they wait for it."""
    until(lambda: any(one.pid in probes(env) for one in ranks))
    probing = next(one for one in ranks if one.pid in probes(env))
    others = [one for one in ranks if one is not probing]
    for other in others:
        assert other.stderr is not None
        line = other.stderr.readline()
        assert line.startswith("gputune: waiting for another process, which probes this machine"), line
    return probing, others


def answers(ranks: list[Rank]) -> list[str]:
    """What their commands print."""
    outs = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * len(ranks)
    return outs


def measured_by(outs: list[str]) -> set[int | None]:
    """The numbers of those who measured what was applied, as `number` has them; None where nothing was."""
    return {None if out == "None\n" else json.loads(out)["settings"]["omp_threads"] for out in outs}


def number(pid: int) -> int:
    """The value that tells who measured a profile."""
    return pid % 4000 + 1

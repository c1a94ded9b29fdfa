"""GPUTUNE_PROBE: measuring the machine before `gputune apply auto` applies, once a node, while other processes wait."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from gputune.errors import GputuneError, UsageError
from gputune.host import Host
from gputune.host.node_lock import node_lock
from gputune.host.stderr import say
from gputune.profile import Fingerprint, places
from gputune.runtime.locate import named

VARIABLE = "GPUTUNE_PROBE"
WHEN = ("never", "missing", "always")
"""Never, which is the default; where this fingerprint has no profile in the cache; or at each start."""

WAIT_SECONDS = 600.0
"""How long a process waits for the one that probes: several times what a probe takes."""


def probe_first(host: Host, here: Fingerprint) -> None:
    """Measure this machine for the cache where GPUTUNE_PROBE asks for it and nobody else does it now.

    Of processes that start at once one probes, and the others take what it wrote; if it dies, the next one does. What goes
    wrong is a line on stderr, and what is known holds for all. Raises UsageError for a GPUTUNE_PROBE that is none of WHEN.
    """
    when = host.environ.get(VARIABLE) or "never"
    if when not in WHEN:
        raise UsageError(f"{VARIABLE}={when}: says no time to probe", f"choose from {', '.join(WHEN)}")
    before = _stamp(here, host.environ)
    if when == "never" or named(host.environ) or (when == "missing" and before):
        return
    folder = places.user_folder(host.environ)
    try:
        _in_turn(host, here, before, places.create_folder(folder))
    except GputuneError as error:
        say(f"not probed: {error}")
    except OSError as error:
        say(f"not probed: {error.filename or folder}: {error.strerror}")


def _in_turn(host: Host, here: Fingerprint, before: object, folder: Path) -> None:
    waiting = f"waiting for another process, which probes this machine, for up to {WAIT_SECONDS:g} s"
    with node_lock(folder, "probe", WAIT_SECONDS, lambda: say(waiting)) as turn:
        if turn.after_another or _stamp(here, host.environ) != before:
            return  # what it wrote holds for all, or where it failed nothing does
        if turn.held:
            _probe(host, here, folder)
        else:
            say(f"not probed: another process has not come to an end with it in {WAIT_SECONDS:g} s")


def _probe(host: Host, here: Fingerprint, folder: Path) -> None:
    """Raises MeasureError also where it cannot be kept: then the processes beside this one would have no profile, or another one."""
    from gputune import probing

    tempfile.TemporaryFile(dir=folder).close()  # rather than to find out after a minute
    say(f"probing this machine before the command starts, since {VARIABLE}={host.environ[VARIABLE]}: about a minute")
    found = probing.probe(probing.Request(), host=host)
    # Nodes that share the folder probe at the same time, and all ranks of a job are to have the first one's.
    places.keep(found, here, host.environ, replace=host.environ[VARIABLE] == "always")


def _stamp(here: Fingerprint, environ: Mapping[str, str]) -> tuple[str, int, int] | None:
    """What tells one cached profile from the next; None where there is none."""
    path = places.cached(here, environ)
    try:
        told = path.stat() if path else None
    except OSError:
        return None
    return (str(path), told.st_mtime_ns, told.st_ino) if told else None

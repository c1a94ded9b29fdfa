"""GPUTUNE_PROBE: probe the machine before `gputune apply auto` applies, once a node, while other processes wait."""

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
"""never is the default; missing: where the cache has no profile for this fingerprint; always: at each start."""

WAIT_SECONDS = 600.0
"""How long a process waits for the one that probes: several times as long as a probe takes."""


def probe_first(host: Host, here: Fingerprint) -> None:
    """Probe this machine for the cache where GPUTUNE_PROBE asks for it.

    Of processes that start at once one probes, and the others use the profile that it wrote; if it dies, the next one
    probes. A failure is a line on stderr, and all go on with the profile that they have. Raises UsageError for a
    GPUTUNE_PROBE that is not one of WHEN.
    """
    when = host.environ.get(VARIABLE) or "never"
    if when not in WHEN:
        raise UsageError(f"{VARIABLE}={when}: is not a time to probe", f"choose from {', '.join(WHEN)}")
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
            return  # the other process has probed for all, or failed for all
        if turn.held:
            _probe(host, here, folder)
        else:
            say(f"not probed: another process has been probing for more than {WAIT_SECONDS:g} s")


def _probe(host: Host, here: Fingerprint, folder: Path) -> None:
    """Raises MeasureError also where the profile cannot be kept, since the processes that wait would not get it."""
    from gputune import probing

    tempfile.TemporaryFile(dir=folder).close()  # fails now rather than after a minute of measuring
    say(f"probing this machine before the command starts, since {VARIABLE}={host.environ[VARIABLE]}: about a minute")
    profile = probing.probe(probing.Request(), host=host, cached=lambda _: places.latest(here, host.environ))
    # Nodes that share the folder probe at the same time, and all ranks of a job are to have the first one's.
    places.keep(profile, here, host.environ, replace=host.environ[VARIABLE] == "always")


def _stamp(here: Fingerprint, environ: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Return what differs between one cached profile and the next; None where no profile is cached."""
    path = places.cached(here, environ)
    try:
        stat = path.stat() if path else None
    except OSError:
        return None
    return (str(path), stat.st_mtime_ns, stat.st_ino) if stat else None

"""GPUTUNE_PROBE: probe the machine before `gputune apply auto` applies, once a node, while other processes wait."""

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from gputune.errors import GputuneError, MeasureError, UsageError
from gputune.host import Host
from gputune.host.node_lock import Undone, node_lock
from gputune.host.stderr import say
from gputune.profile import Fingerprint, Profile, places
from gputune.profile.limits import MOST_BYTES
from gputune.runtime.locate import named

VARIABLE = "GPUTUNE_PROBE"
WHEN = ("never", "missing", "always")
"""never is the default; missing: where the cache has no profile for this fingerprint that can be trusted and read;
always: at each start."""
WAIT_SECONDS = 600.0
"""How long a process waits for the one that probes: several times as long as a probe takes."""


class _NotKept(Undone):
    """The measured profile could not be written: this process applies it, and the next one may have more luck."""

    def __init__(self, profile: Profile, why: MeasureError) -> None:
        super().__init__(str(why))
        self.profile = profile


def probe_first(host: Host, here: Fingerprint) -> Profile | None:
    """Probe this machine for the cache where GPUTUNE_PROBE asks for it.

    Of processes that start at once one probes, and the others use the profile that it wrote; if it is killed or
    interrupted, the next one probes. A failure is a line on stderr, and all go on with the profile that they have.
    Returns a profile only where it was measured and could not be written. Raises UsageError for a GPUTUNE_PROBE that is
    not one of WHEN.
    """
    when = host.environ.get(VARIABLE) or "never"
    if when not in WHEN:
        raise UsageError(f"{VARIABLE}={when}: is not a time to probe", f"choose from {', '.join(WHEN)}")
    if when == "never" or named(host.environ):
        return None
    before = _stamp(here, host.environ)
    if when == "missing" and before:
        return None
    folder = places.user_folder(host.environ)
    try:
        _in_turn(host, here, before, places.create_folder(folder))
    except _NotKept as unkept:
        say(f"applied to this start alone: {unkept}")
        return unkept.profile
    except GputuneError as error:
        say(f"not probed: {error}")
    except OSError as error:
        remedy = "make room there, or set XDG_CACHE_HOME to a folder that can be written"
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO):
            remedy = "remove it"  # a folder, a link, a pipe or a device is in the lock's place
        say(f"not probed: {error.filename or folder}: {error.strerror}; {remedy}")
    return None


def _in_turn(host: Host, here: Fingerprint, before: object, folder: Path) -> None:
    def waiting(seconds: float) -> None:
        say(f"waiting for another process, which probes this machine, for up to {seconds:g} s")

    with node_lock(folder, "probe", WAIT_SECONDS, waiting) as turn:
        if turn.after_another or _stamp(here, host.environ) != before:
            return  # the other process has probed for all, or failed for all
        if turn.held:
            _probe(host, here, folder)
        elif turn.stranger is None:
            say(f"not probed: another process has been probing for more than {WAIT_SECONDS:g} s")
        else:
            holder = f"user {turn.stranger} holds the lock in {folder}"
            say(f"not probed: {holder}; set XDG_CACHE_HOME to a folder of your own")


def _probe(host: Host, here: Fingerprint, folder: Path) -> None:
    """Raises _NotKept where the profile cannot be written, since the processes that wait would not get it."""
    from gputune import probing
    from gputune.report.progress import shown

    with _reserved(folder):
        say(
            f"probing this machine before the command starts, since {VARIABLE}={host.environ[VARIABLE]}: about a minute"
        )
        found = places.found(here, host.environ, say)
        with shown(lines=False) as progress:
            profile = probing.probe(
                probing.ProbeRequest(), host=host, progress=progress, cached=lambda _: found[1] if found else None
            )
    try:
        # Nodes that share the folder probe at the same time, and all ranks of a job are to have the first one's.
        places.keep(profile, here, host.environ, replace=host.environ[VARIABLE] == "always")
    except MeasureError as error:
        raise _NotKept(profile, error) from None


@contextmanager
def _reserved(folder: Path) -> Iterator[None]:
    """Hold the room that a profile may need until the block ends: a disk that is full, or fills meanwhile, must not
    cost the measurement. The file has no name, so that nothing is left of it however this process ends. Raises OSError.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, MOST_BYTES)
            os.fsync(file.fileno())  # NFS tells of a full disk or a quota only now
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            # This file system promises no room.
        yield


def _stamp(here: Fingerprint, environ: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Return what differs between one cached profile and the next; None where none can be trusted and read."""
    if found := places.found(here, environ):
        with suppress(OSError):
            stat = found[0].stat()
            return str(found[0]), stat.st_mtime_ns, stat.st_ino
    return None

"""What a process that was killed in the middle of writing left beside its file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from gputune.host import atomic

KILLED = f"""
import os, pathlib, signal, sys
from gputune.host import atomic
os.fsync = lambda descriptor: os.kill(os.getpid(), {int(signal.SIGKILL)})
atomic.write(pathlib.Path(sys.argv[1]), "half")
"""


def killed_while_writing(target: Path) -> Path:
    """The temporary file that it left."""
    subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    [left] = target.parent.glob(".*.tmp")
    return left


def test_the_next_write_removes_it(tmp_path: Path) -> None:
    target = tmp_path / "profile.yaml"
    target.write_text("old")
    left = killed_while_writing(target)
    assert target.read_text() == "old"
    os.utime(left, (0, time.time() - 1.1 * atomic.ABANDONED_SECONDS))
    atomic.write(target, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("profile.yaml", "new")]


def test_one_that_may_still_be_written_stays_and_so_does_what_is_not_of_this_file(tmp_path: Path) -> None:
    left = killed_while_writing(tmp_path / "profile.yaml")
    others = [tmp_path / name for name in (".profile.yaml.tmp", ".other.yaml.0123456789abcdef.tmp", "profile.yaml.tmp")]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    atomic.write(tmp_path / "profile.yaml", "new")
    assert set(tmp_path.iterdir()) == {tmp_path / "profile.yaml", left, *others}

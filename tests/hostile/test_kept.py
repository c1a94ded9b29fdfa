"""What a keeper owns is this user's alone, and ends when it is to, however this process was started or forked."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from making import until

from gputune.host import keeper
from gputune.host.kept import Kept

BLOCKED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
os.execv(sys.argv[1], sys.argv[1:])
"""
ENDS = "from gputune.host.kept import Kept; kept = Kept(['true']); print(kept.code(20)); kept.end()"
STRANGER = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o1777)
    return tmp_path / "gputune-0123abcd"


def test_a_folder_of_another_user_in_the_place_of_its_own_is_not_taken(folder: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can make another user's folder")
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    said = folder.with_name("said")
    kept = Kept(["sh", "-c", f'echo "[${keeper.VARIABLE}]" > {said}'], folder=str(folder))
    assert kept.code(20) == 0
    kept.end()
    assert said.read_text() == "[]\n"
    assert folder.stat().st_uid == STRANGER


def test_a_link_in_the_place_of_its_own_is_not_followed(folder: Path) -> None:
    precious = folder.with_name("precious")
    (precious / "kept").mkdir(parents=True, mode=0o755)
    folder.symlink_to(precious)
    kept = Kept(["true"], folder=str(folder))
    assert kept.code(20) == 0
    kept.end()
    assert [path.stat().st_mode & 0o777 for path in (precious, precious / "kept")] == [0o755, 0o755]
    assert folder.is_symlink()


def test_an_inherited_variable_names_no_folder(folder: Path) -> None:
    said = folder.with_name("said")
    environ = {**os.environ, keeper.VARIABLE: "/of/another"}
    kept = Kept(["sh", "-c", f'echo "[${keeper.VARIABLE}]" > {said}'], environ)
    assert kept.code(20) == 0
    kept.end()
    assert said.read_text() == "[]\n"


def test_a_command_that_ends_is_noticed_where_sigchld_is_blocked() -> None:
    words = [sys.executable, "-c", BLOCKED, sys.executable, "-c", ENDS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_copy_of_this_process_by_fork_keeps_nothing_alive(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    kept = Kept(["sh", "-c", f"echo $$ > {said}.new; mv {said}.new {said}; exec sleep 600"])
    until(said.exists)
    copy = os.fork()
    if not copy:
        time.sleep(600)
        os._exit(0)
    try:
        begun = time.monotonic()
        kept.end()
        assert time.monotonic() - begun < 5
        assert not Path(f"/proc/{said.read_text().strip()}").exists()
    finally:
        os.kill(copy, signal.SIGKILL)
        os.waitpid(copy, 0)

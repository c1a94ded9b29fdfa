"""One holder a node: others wait until a deadline, and a holder's death sets the lock free."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gputune.host.node_lock import node_lock, this_node

HOLD = """
import sys, time
from pathlib import Path
from gputune.host.node_lock import node_lock
with node_lock(Path(sys.argv[1]), "probe", 10) as held:
    print(held.held, flush=True)
    subprocess = __import__("subprocess")
    child = subprocess.Popen(["sleep", "60"]) if sys.argv[2:] else None
    print(child.pid if child else 0, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    more = ["with a child"] if getattr(request, "param", False) else []
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), *more], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        child = int(process.stdout.readline())
        yield process
        process.kill()
        if child:
            os.kill(child, signal.SIGKILL)


@pytest.mark.slow
def test_while_it_is_held_nobody_else_gets_it_until_the_deadline(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    start = time.monotonic()
    with node_lock(tmp_path, "probe", 0.3) as turn:
        assert not turn.held
    assert 0.3 <= time.monotonic() - start < 5


@pytest.mark.parametrize("holder", [False, True], indirect=True, ids=["alone", "its child lives on"])
def test_the_holders_death_sets_it_free(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    with node_lock(tmp_path, "probe", 10) as turn:
        assert turn.held


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "ended"), [("0.5", True), ("60", False)], ids=["it ended", "it was killed"])
def test_a_waiter_knows_whether_the_one_before_it_came_to_its_end(tmp_path: Path, seconds: str, ended: bool) -> None:
    words = [sys.executable, "-c", HOLD.replace("time.sleep(60)", f"time.sleep({seconds})"), str(tmp_path)]
    said = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        if not ended:
            threading.Timer(0.3, process.kill).start()
        with node_lock(tmp_path, "probe", 10, said.append) as turn:
            assert (turn.held, turn.after_another) == (True, ended)
    assert said == [10]


def test_one_after_the_other(tmp_path: Path) -> None:
    for _ in range(2):
        with node_lock(tmp_path, "probe", 0) as turn:
            assert turn.held


def test_nodes_that_share_the_folder_have_a_lock_each(tmp_path: Path) -> None:
    with node_lock(tmp_path, "probe", 0, node="4f1c") as turn, node_lock(tmp_path, "probe", 0, node="a8d7") as another:
        assert turn.held
        assert another.held
        assert sorted(path.name for path in tmp_path.iterdir()) == ["probe-4f1c.lock", "probe-a8d7.lock"]
    assert not list(tmp_path.iterdir()), "one for each start of each node would pile up"


def test_containers_of_a_node_share_its_lock_whatever_their_host_names(tmp_path: Path) -> None:
    code = HOLD.replace("time.sleep(60)", "")
    renamed = ["unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname another && exec "$@"', "sh"]
    with node_lock(tmp_path, "probe", 0):
        words = [*renamed, sys.executable, "-c", code.replace("10", "0"), str(tmp_path)]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unshare" in result.stderr or "hostname" in result.stderr:
        pytest.skip(f"no host name of its own can be had here: {result.stderr.strip()}")
    assert result.stdout == "False\n0\n"


def test_a_node_is_named_by_its_start_or_else_by_its_host_name(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("node/7\n")
    assert this_node(tmp_path / "boot_id") == "node_7"
    assert this_node(tmp_path / "missing") == re.sub(r"[^\w.-]", "_", socket.gethostname())


def test_a_link_that_somebody_laid_there_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "probe-node.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), node_lock(tmp_path, "probe", 0, node="node"):
        pass
    assert not (tmp_path / "elsewhere").exists()

"""The host: what cannot be read or does not answer raises `Unreadable` with the reason, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from making import until
from trees import grow

from gputune.host import Host, Unreadable, child

ANSWER = "import json, os, sys\npipe = os.fdopen(int(sys.argv[1]), 'w')\n"


@pytest.fixture
def ask(tmp_path):
    def ask(script, deadline=30.0, **host):
        file = tmp_path / "script.py"
        file.write_text(ANSWER + script)
        before = descriptors()
        try:
            return Host(**host).ask_python(file, deadline)
        finally:
            assert descriptors() == before

    return ask


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_answer(ask):
    assert ask("json.dump({'torch': '2.11.0'}, pipe)") == {"torch": "2.11.0"}


def test_what_the_child_prints_is_no_answer(ask, capfd):
    assert ask("print('noise'); print('noise', file=sys.stderr); json.dump({}, pipe)") == {}
    assert capfd.readouterr() == ("", "")


def test_an_answer_larger_than_a_pipe(ask):
    assert len(ask("json.dump({'long': 'x' * 300_000}, pipe)")["long"]) == 300_000


def test_the_child_has_the_host_s_environment_and_no_shim(ask):
    answer = ask("json.dump(dict(os.environ), pipe)", environ={"HOME": "/h"})
    assert (answer["HOME"], answer["GPUTUNE_DISABLE"]) == ("/h", "1")
    assert "PATH" not in answer


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("os._exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 11)", "exit code -11"),
        ("raise RuntimeError", "exit code 1"),
        ("pipe.write('{\"torch\": ')", "exit code 0"),
        ("pipe.buffer.write(b'\\xff\\x00')", "exit code 0"),
        ("pipe.write('[' * 100_000)", "exit code 0"),
        ("pipe.write('[1, 2]')", "something else"),
    ],
)
def test_a_crash_or_garbage_is_unreadable(ask, script, reason):
    with pytest.raises(Unreadable, match=reason):
        ask(script)


@pytest.mark.slow
@pytest.mark.parametrize("then", ["time.sleep(600)", "json.dump({}, pipe); pipe.flush(); time.sleep(600)"])
def test_a_hang_ends_at_the_deadline_and_leaves_no_process(ask, tmp_path, then):
    script = f"""
import subprocess, time
child = subprocess.Popen(["sleep", "600"], pass_fds=[int(sys.argv[1])])
open({str(tmp_path / "pids")!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
{then}
"""
    started = time.monotonic()
    with pytest.raises(Unreadable, match="within 1 s"):
        ask(script, 1.0)
    assert time.monotonic() - started < 5
    pids = (tmp_path / "pids").read_text().split()
    until(lambda: not any(map(alive, pids)), 5)


@pytest.mark.parametrize("python", ["/no/such/python", "/etc/hostname"])
def test_a_missing_interpreter_is_unreadable(ask, python):
    with pytest.raises(Unreadable, match=python):
        ask("", python=python)


@pytest.mark.parametrize("path", ["/missing", "/folder", "/folder/file/below", "/nul\0", "/" + "x" * 300])
def test_a_file_that_cannot_be_read(tmp_path, path):
    host = grow(tmp_path, {"/folder/file": ""})
    with pytest.raises(Unreadable):
        host.read(path)


def test_what_is_in_a_tree_is_read_below_its_root_and_what_is_not_does_not_exist(tmp_path, monkeypatch):
    host = grow(tmp_path, {"/dev/nvidia1": "", "/dev/nvidia0": "", "/proc/version": "Linux\n"})
    assert (host.read("/proc/version"), host.exists("/proc/version")) == ("Linux\n", True)
    assert host.names("/dev") == ["nvidia0", "nvidia1"]
    for path in ("/proc/self", "/nul\0", "/" + "x" * 300):
        assert (host.exists(path), host.names(path)) == (False, [])
    (tmp_path / "file").write_bytes(b"a\xffb")
    monkeypatch.chdir(tmp_path)
    assert Host().read("file") == "a\N{REPLACEMENT CHARACTER}b"


def test_space_is_that_of_the_file_system(tmp_path):
    total, free = Host(root=str(tmp_path)).space_bytes("/")
    assert 0 <= free <= total
    with pytest.raises(Unreadable, match="/missing"):
        Host(root=str(tmp_path)).space_bytes("/missing")


def test_this_machine():
    host = Host()
    logical, physical = host.cpu_counts()
    assert host.affinity()
    assert logical >= (physical or 1)
    assert host.memory_bytes() > 0
    assert host.environ is os.environ


def test_a_folder_that_may_be_written_to(tmp_path):
    host = grow(tmp_path, {"/file": ""})
    assert host.writable("/")
    assert not host.writable("/missing")
    assert not Host().writable("/proc/self")


@pytest.mark.parametrize(("files", "reason"), [({}, "No such file"), ({"/dev/kmsg": ""}, "is empty here")])
def test_a_log_that_is_missing_or_masked_is_unreadable(tmp_path, files, reason):
    assert grow(tmp_path, {"/dev/kmsg": "6,1,1,-;one\n6,2,2,-;two\n"}).kernel_log() == "6,1,1,-;one\n6,2,2,-;two\n"
    (tmp_path / "dev" / "kmsg").unlink()
    with pytest.raises(Unreadable, match=f"/dev/kmsg: {reason}"):
        grow(tmp_path, files).kernel_log()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="the kernel's log is not readable here")
def test_the_real_kernel_s_log_is_read_without_waiting_for_more():
    started = time.monotonic()
    try:
        log = Host().kernel_log()
    except Unreadable as error:
        log = str(error)
    assert ";" in log or "is empty here" in log  # as a container's is where it is masked
    assert time.monotonic() - started < 2


def test_the_nearest_folder_is_the_first_that_exists(tmp_path, monkeypatch):
    host = Host()
    assert host.nearest(str(tmp_path)) == str(tmp_path)
    assert host.nearest(f"{tmp_path}/not/yet") == str(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert host.nearest("not/yet") == str(tmp_path)
    assert host.nearest("/not/here") == "/"


def test_a_command_is_found_in_the_host_s_path(tmp_path):
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    assert Host(environ={"PATH": str(tmp_path)}).which("tool") == str(tmp_path / "tool")
    assert Host(environ={"PATH": "/nowhere"}).which("tool") is None


def test_a_user_has_an_id_and_mostly_a_name():
    uid, name, home = Host().user()
    assert uid == os.getuid()
    assert (name is None) == (home is None)


def test_a_device_that_may_not_be_opened(tmp_path):
    host = grow(tmp_path, {"/dev/nvidia0": ""})
    assert not host.forbidden("/dev/nvidia0")
    assert not host.forbidden("/dev/missing")
    (tmp_path / "dev/nvidia0").chmod(0)
    assert host.forbidden("/dev/nvidia0") is (os.geteuid() != 0)


PART = "pipe.write(json.dumps({'torch': '2.11.0', 'gaps': {'nccl': 'no'}, 'next': 'devices'}) + '\\n'); pipe.flush()\n"


def test_an_answer_in_parts(ask):
    whole = "json.dump({'devices': [], 'gaps': {'pynvml': 'no'}}, pipe)"
    assert ask(PART + whole) == {"torch": "2.11.0", "devices": [], "gaps": {"nccl": "no", "pynvml": "no"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "cause", "reason"),
    [
        ("os.kill(os.getpid(), 11)", "killed", "exit code -11"),
        ("os._exit(3)", "exited", "exit code 3"),
        ("pipe.write('{\"devices\": ')", "exited", "exit code 0"),
        ("import time; pipe.flush(); time.sleep(600)", "no_answer", "within 2 s"),
    ],
)
def test_what_was_answered_before_a_crash_or_a_hang_is_kept(ask, then, cause, reason):
    answer = ask(PART + then, 2.0)
    gap = answer["gaps"].pop("devices")
    assert answer == {"torch": "2.11.0", "gaps": {"nccl": "no"}}
    assert (gap["type"], gap["name"], reason in gap["message"]) == (child.UNANSWERED, cause, True)


@pytest.mark.slow
def test_nothing_more_is_waited_for_once_there_is_no_hope(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(f"{ANSWER}{PART}import time; time.sleep(600)")
    started = time.monotonic()
    answer = child.ask([sys.executable, str(file)], os.environ, 60.0, lambda: True)
    assert time.monotonic() - started < 10
    assert "NVML hangs" in answer["gaps"]["devices"]["message"]


def test_an_interrupt_while_it_is_started_is_raised_once_it_is_known_and_leaves_nothing(monkeypatch):
    start = subprocess.Popen

    def interrupted(*arguments, **options):
        started = start(*arguments, **options)
        signal.raise_signal(signal.SIGINT)  # as it comes between the fork and the return
        return started

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        child.ask([sys.executable, "-c", "import time; time.sleep(60)", "gone"], {}, 30.0)
    assert not [one for one in psutil.Process().children(recursive=True) if "gone" in one.cmdline()]
    assert signal.getsignal(signal.SIGINT) is handler

"""Faults made for real around `gputune check`: quotas, a small /dev/shm, a read-only root, a user without a name.

`pytest -m real` runs them; they need root, and for cgroup v2 on a host of v1 user-mode Linux.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest
import stand_in
from making import before_others, environ

pytestmark = pytest.mark.real

CHECK = [sys.executable, "-m", "gputune", "check", "--json"]


def run(words, env=None, seconds=120):
    started = time.monotonic()
    result = subprocess.run(
        words,
        env=env or environ(),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if result.stderr.startswith(("unshare:", "mount:", "setpriv:")):
        pytest.skip(f"not possible here: {result.stderr.strip()[:200]}")
    return result, time.monotonic() - started


def answer(result):
    assert "Traceback" not in result.stderr
    assert result.returncode in (0, 1), result.stderr
    found = json.loads(result.stdout)
    return found["facts"], {one["check"]: one for one in found["findings"]}


@pytest.fixture
def half_a_cpu(cgroup):
    """The words that put a command into a cgroup v1 group of half a CPU."""
    return cgroup(cpus=0.5).words


@pytest.fixture
def no_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    return environ(PYTHONPATH=before_others(tmp_path))


@pytest.mark.timed
def test_a_quota_of_cgroup_v1(half_a_cpu):
    facts, found = answer(run([*half_a_cpu, *CHECK])[0])
    assert facts["cpu"]["quota"] == 0.5
    assert found["cpu_quota"]["severity"] == "WARNING"
    assert "the quota allows 0.5 of a CPU" in found["cpu_quota"]["message"]
    assert found["cpu_throttled"]["severity"] == "WARNING"  # importing torch alone spends it


def test_a_cgroup_namespace_that_hides_the_quota_is_unknown(half_a_cpu):
    facts, found = answer(run([*half_a_cpu, "unshare", "-C", *CHECK])[0])
    assert facts["cpu"]["quota"] is None
    assert found["cpu_quota"]["severity"] == "UNKNOWN"
    assert "/sys/fs/cgroup/cpu shows a parent" in found["cpu_quota"]["message"]


def test_64_mib_of_shared_memory():
    small = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m shm /dev/shm; exec "$@"', "sh"]
    facts, found = answer(run([*small, *CHECK])[0])
    assert facts["memory"]["shm_bytes"] == 64 << 20
    assert found["shm_size"]["severity"] == "WARNING"
    assert "64 MiB" in found["shm_size"]["message"]


READ_ONLY = ["unshare", "-m", "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh"]
# Not root any more, but for reading: the interpreter may lie in root's home.
NOBODY = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--inh-caps=-all,+dac_read_search",
          "--ambient-caps=-all,+dac_read_search", "--bounding-set=-all,+dac_read_search"]  # fmt: skip


@pytest.mark.timed
def test_without_anything_it_answers_within_two_seconds(half_a_cpu, no_torch):
    """No torch, no NVML, no GPU, a user without a name, a read-only file system, half a CPU."""
    gone = ("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME")
    without = {name: value for name, value in no_torch.items() if name not in gone}
    result, seconds = run([*half_a_cpu, *READ_ONLY, *NOBODY, *CHECK], without)
    facts, found = answer(result)
    assert (facts["process"]["uid"], facts["process"]["user"]) == (12345, None)
    assert found["torch_version"]["severity"] == "WARNING"
    assert "HOME (not set)" in found["cache_folders"]["message"]
    assert found["unknown_uid"]["severity"] == "WARNING"
    assert "ERROR" not in {one["severity"] for one in found.values()}
    assert seconds < 2, seconds


def test_a_read_only_root_with_torch():
    """Torch imports dill where it is there, which needs a folder for temporary files at once."""
    _, found = answer(run([*READ_ONLY, *NOBODY, *CHECK])[0])
    assert found["cache_folders"]["severity"] == "WARNING"
    if find_spec("dill"):
        assert found["torch_version"]["severity"] == "ERROR"
        assert "No usable temporary directory" in found["torch_version"]["message"]
        assert " install " not in found["torch_version"]["remedy"]
    else:
        assert found["torch_version"]["severity"] == "OK"
        assert found["compile_needs"]["severity"] == "WARNING"


UML = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run; mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+cpu +memory" > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/job/inner
echo "+cpu +memory" > /sys/fs/cgroup/job/cgroup.subtree_control
echo "50000 100000" > /sys/fs/cgroup/job/cpu.max
echo 2147483648 > /sys/fs/cgroup/job/inner/memory.max
echo $$ > /sys/fs/cgroup/job/inner/cgroup.procs
export TMPDIR=/run HOME=/run
timeout 1 sh -c "while :; do :; done"
echo BEGIN; {check} 2>/run/said; echo END; cat /run/said
halt -f
"""


def booted(tmp_path, script):
    """What a script says that is the first process of user-mode Linux, on this host's files."""
    linux = shutil.which("linux.uml")
    if linux is None:
        pytest.skip("needs user-mode Linux (Debian: apt-get install user-mode-linux)")
    (tmp_path / "init").write_text(script)
    (tmp_path / "init").chmod(0o755)
    kernel = [linux, "mem=3G", "rootfstype=hostfs", "rootflags=/", "ro", f"init={tmp_path}/init", "con=null",
              "con0=null,fd:1", "ssl=null", "cgroup_no_v1=all", "quiet",
              f"umid=gputune{os.getpid()}", f"uml_dir={tmp_path}/"]  # fmt: skip
    result, _ = run(["timeout", "240", *kernel], seconds=250)
    printed = result.stdout.replace("\r\n", "\n")
    assert "Traceback" not in printed
    return printed


def test_a_nested_quota_of_cgroup_v2(tmp_path):
    """Half a CPU is soon spent. Torch, which takes ten seconds to import there, is a stand-in."""
    stood_in = environ(PYTHONPATH=stand_in.torch(tmp_path))
    words = ["env", *(f"{name}={value}" for name, value in stood_in.items()), "TMPDIR=/run", "HOME=/run", *CHECK]
    printed = booted(tmp_path, UML.format(check=shlex.join(words)))
    found = json.loads(printed.partition("BEGIN\n")[2].partition("END\n")[0])
    cpu, memory = found["facts"]["cpu"], found["facts"]["memory"]
    assert (cpu["quota"], cpu["quota_source"]) == (0.5, "/sys/fs/cgroup/job/cpu.max")
    assert memory["limit_bytes"] == 2 << 30
    severities = {one["check"]: one["severity"] for one in found["findings"]}
    assert severities["cpu_throttled"] == "WARNING"
    assert severities["memory_left"] == "OK"
    assert "ERROR" not in severities.values()

"""A node with H100s that do not exist, whose driver fails as it is told, and gputune run on it for real.

NVML is a stub (stub.c), compiled once and found through LD_LIBRARY_PATH. Device files, the kernel module's version and
the PCI bus are files in private mounts of the command alone. What a run leaves behind is found by a variable in its
environment, which all its descendants inherit.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

import forked
import pytest
from making import environ

GPU = "NVIDIA H100 80GB HBM3"
ADDRESSES = tuple(f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df"))
MARK = "GPUTUNE_TEST_MARK"
START_UP_SECONDS = 15.0
"""How long gputune may take beside what it waits for: twice a second of Python and three of torch, on two busy CPUs."""
LEAVING_SECONDS = 2.0
"""How long a killed process may take to go on busy CPUs."""
_TORCH_FILES = ("torch", "torchgen", "functorch", "triton", "nvidia", "gputune")
_folder = tempfile.TemporaryDirectory()
_making = RLock()
"""Several tests' threads may be the first to need an interpreter."""

_PRIVATE_MOUNTS = r"""
set -e
mount -t tmpfs node "$SCRATCH"
mkdir "$SCRATCH/dev" "$SCRATCH/dev/shm" "$SCRATCH/nvidia" "$SCRATCH/pci"
for name in null zero full random urandom tty kmsg; do
  [ -e /dev/$name ] && touch "$SCRATCH/dev/$name" && mount --bind /dev/$name "$SCRATCH/dev/$name"
done
for name in fd stdin stdout stderr; do cp -a /dev/$name "$SCRATCH/dev/$name"; done
mount --bind /dev/shm "$SCRATCH/dev/shm"
echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build" > "$SCRATCH/nvidia/version"
number=0
for address in $ADDRESSES; do
  touch "$SCRATCH/dev/nvidia$number"
  mkdir "$SCRATCH/pci/$address"
  printf 'DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=%s\n' "$address" \
    > "$SCRATCH/pci/$address/uevent"
  number=$((number + 1))
done
touch "$SCRATCH/dev/nvidiactl" "$SCRATCH/dev/nvidia-uvm" "$SCRATCH/dev/nvidia-uvm-tools"
mkdir "$SCRATCH/driver"
mv "$SCRATCH/nvidia" "$SCRATCH/driver/nvidia"
mount --rbind "$SCRATCH/driver" /proc/driver
mount --bind "$SCRATCH/pci" /sys/bus/pci/devices
mount --rbind "$SCRATCH/dev" /dev
exec "$@"
"""

_TORCH = """
from torch.version import cuda as _cuda
__version__ = "2.13.0+cu130"
class OutOfMemoryError(RuntimeError): pass
class _Device:
    name, major, minor, total_memory, multi_processor_count = {gpu!r}, 9, 0, 85017493504, 132
    def __init__(self, index): self.uuid = f"{{index:08x}}-0000-4000-8000-000000000000"
class cuda:
    OutOfMemoryError = OutOfMemoryError
    def device_count(): return {gpus}
    def get_device_properties(index): return _Device(index)
    def set_device(device): pass
class _C:
    def _cuda_getArchFlags(): return "sm_80 sm_90"
def zeros(*size, device): pass
"""


def library() -> Path:
    """The folder with the stub, which is compiled once. Skips the test where there is no C compiler."""
    with _making:
        return _compiled()


@cache
def _compiled() -> Path:
    if Path("/dev/nvidia0").exists():
        pytest.skip("torch sees the real GPU of this machine beside the stub's")
    compiler = shutil.which("cc") or pytest.skip("no C compiler here")
    folder = Path(_folder.name, "driver")
    folder.mkdir()
    source, target = Path(__file__).with_name("stub.c"), folder / "libnvidia-ml.so.1"
    words = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(target), str(source)]
    subprocess.run([*words, "-pthread"], check=True)
    return folder


def without_torch() -> str:
    with _making:
        return _interpreter("without-torch")


def with_stand_in(gpus: int = 2) -> str:
    """An interpreter whose torch is a stand-in, built for CUDA, which says that it sees so many H100s."""
    with _making:
        return _stand_in(gpus)


@cache
def _stand_in(gpus: int) -> str:
    python = _interpreter(f"stand-in-{gpus}")
    torch = next(Path(python).parents[1].glob("lib/python*/site-packages")) / "torch"
    torch.mkdir()
    (torch / "__init__.py").write_text(_TORCH.format(gpu=GPU, gpus=gpus))
    (torch / "version.py").write_text("__version__ = '2.13.0+cu130'\ncuda = '13.0'\n")
    return python


def _places() -> list[Path]:
    """Where this interpreter finds packages: its own folder, and those of the Python that it was made of, in order."""
    return [Path(place) for place in sys.path if place.endswith("-packages") and Path(place).is_dir()]


@cache
def _interpreter(name: str) -> str:
    """A virtual environment of links to this one's packages, and to those of the Python below it, without torch."""
    folder = Path(_folder.name, name)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    for entry in (entry for place in _places() for entry in place.iterdir()):
        startup, link = entry.suffix == ".pth" and "gputune" not in entry.name, packages / entry.name
        if entry.name.split("-")[0] not in _TORCH_FILES and not startup and not link.is_symlink():
            link.symlink_to(entry)
    import gputune

    for own in ("gputune", "gputune_start.py"):
        if not (packages / own).is_symlink():
            (packages / own).symlink_to(Path(gputune.__file__).parents[1] / own)
    (folder / "bin" / "python").symlink_to(base)
    return str(folder / "bin" / "python")


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: str
    stderr: str
    seconds: float
    left: list[str]
    """The command lines of its processes that were still there after it."""

    @property
    def answer(self) -> Any:
        return json.loads(self.stdout)

    def findings(self, *severities: str) -> list[dict[str, Any]]:
        return [found for found in self.answer["findings"] if found["severity"] in (severities or found["severity"])]

    def gaps(self) -> dict[str, dict[str, Any]]:
        return {gap["fact"]: gap for gap in self.answer["facts"]["gaps"]}

    def said(self) -> str:
        return f"exit {self.code} after {self.seconds:.1f} s\n{self.stdout[-3000:]}\n{self.stderr[-2000:]}"


@dataclass(frozen=True)
class Node:
    """`faults` as in stub.c: `nvmlDeviceGetName@1=hang`. `mounted`: the GPUs have device files and so on."""

    faults: str = ""
    gpus: int = 2
    python: str = sys.executable
    mounted: bool = True
    environ: dict[str, str] = field(default_factory=dict, hash=False)

    def words(self, *words: str) -> list[str]:
        if not self.mounted:
            return list(words)
        return [*unshared(), "sh", "-c", _PRIVATE_MOUNTS, "sh", *words]

    def variables(self, mark: str) -> dict[str, str]:
        scratch = Path(_folder.name, "mounts")
        scratch.mkdir(exist_ok=True)
        return environ(
            LD_LIBRARY_PATH=str(library()),
            STUB_NVML=f"gpus={self.gpus};{self.faults}",
            ADDRESSES=" ".join(ADDRESSES[: self.gpus]),
            SCRATCH=str(scratch),
            **{MARK: mark},
            **self.environ,
        )

    def start(self, mark: str, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
        return subprocess.Popen(self.words(*words), env=self.variables(mark), **pipes | options)

    def command(self, *words: str, seconds: float = 100.0, **options: Any) -> Ran:
        mark, started = uuid.uuid4().hex, time.monotonic()
        process = self.start(mark, *words, **options)
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            stdout, stderr = killed(mark, process)
            stderr += f"\nkilled after {seconds} s"
        took = time.monotonic() - started
        return Ran(process.returncode, stdout, stderr, took, left(mark))

    def gputune(self, *words: str, **options: Any) -> Ran:
        return self.command(self.python, "-m", "gputune", *words, **options)

    def check(self, *words: str, timeout: float = 1) -> Ran:
        """`gputune check --json` in a fork, without most of a start's time. Mounts are those of all such checks."""
        mark, started = uuid.uuid4().hex, time.monotonic()
        idle = _idle(replace(self, faults=""))
        try:
            of = idle.pop()
        except IndexError:
            of = forked.server(*self.words(self.python), env=self.variables("serves"))
        words = ("check", "--json", "--timeout", f"{timeout:g}", *words)
        done = forked.gputune(*words, env=self.variables(mark), of=of)
        took = time.monotonic() - started
        idle.append(of)
        return Ran(done.returncode, done.stdout, done.stderr, took, left(mark))


@cache
def _idle(node: Node) -> list[Any]:
    """The servers for nodes like this one that no thread uses now."""
    return []


@cache
def unshared() -> tuple[str, ...]:
    """The command that gives the one behind it private mounts. Skips the test where there is none."""
    words = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-rm")
    if (
        not shutil.which("unshare")
        or subprocess.run([*words, "mount", "-t", "tmpfs", "x", "/mnt"], check=False).returncode
    ):
        pytest.skip("no private mounts here")
    return words


def marked(mark: str) -> dict[int, str]:
    """The running processes with this mark in their environment, and their command lines."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")[-200:]
        except OSError:  # it has just ended, or is another user's
            continue
    return found


def left(mark: str, seconds: float = LEAVING_SECONDS) -> list[str]:
    """What is still there of it after so long, at the most; that is killed."""
    deadline = time.monotonic() + seconds
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return list(found.values())


def killed(mark: str, process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a command, and what it started; what it wrote until then."""
    left(mark, 0.0)
    process.kill()
    return process.communicate(timeout=10)


def asked(python: str, folder: Path, words: Sequence[str], gpus: int = 2) -> list[str]:
    """The calls, with an @ and the GPU's number, that a verb makes of a healthy driver, in order."""
    log = folder / "calls"
    log.unlink(missing_ok=True)
    Node(f"log={log}", gpus, python).gputune(*words, cwd=folder)
    return list(dict.fromkeys(log.read_text().split())) if log.exists() else []


def short(call: str) -> str:
    """A call's name without what differs between versions of NVML: Temperature, HandleByIndex, Count, Init."""
    name = call.partition("@")[0]
    for prefix in ("nvmlDeviceGet", "nvmlSystemGet", "nvml"):
        name = name.removeprefix(prefix)
    name = name.removesuffix("WithFlags")
    return name.rpartition("_v")[0] if name[-3:-1] == "_v" else name

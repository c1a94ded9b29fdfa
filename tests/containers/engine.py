"""A Docker engine of its own: one daemon in a folder, which leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PACKAGES = {"dockerd": "docker.io", "mmdebstrap": "mmdebstrap", "eatmydata": "eatmydata"}
"""What must be here, and the Debian package that brings it."""

CGROUPS = Path("/sys/fs/cgroup")
START_SECONDS = 30.0
END_SECONDS = 30.0
COMMAND_SECONDS = 170.0
PLENTY_BYTES = 8 << 30
"""Several times what the images and the containers of the tests take together."""

Result = subprocess.CompletedProcess[str]


class NoEngine(Exception):
    """Why no engine can be had on this machine."""


@dataclass(frozen=True, slots=True)
class Container:
    """One that runs in the background."""

    engine: Engine
    name: str

    def says(self, text: str, seconds: float = 30.0) -> None:
        """Wait until the text stands in what it wrote."""
        deadline = time.monotonic() + seconds
        while text not in (said := "".join(self.said())):
            assert time.monotonic() < deadline, f"{text!r} was not said: {said}"
            time.sleep(0.1)

    def said(self) -> tuple[str, str]:
        """Its stdout and its stderr until now."""
        logs = self.engine.docker("logs", self.name)
        return logs.stdout, logs.stderr

    def end(self, seconds: float = COMMAND_SECONDS) -> int:
        """Its exit code, once it has ended by itself."""
        return int(self.engine.docker("wait", self.name, seconds=seconds).stdout)

    def stop(self) -> tuple[int, float]:
        """Its exit code after SIGTERM, and the seconds that took; SIGKILL follows after 20 of them."""
        start = time.monotonic()
        self.engine.docker("stop", "--time", "20", self.name)
        return self.end(), time.monotonic() - start


@dataclass(frozen=True, slots=True)
class Engine:
    folder: Path

    def docker(self, *words: str, check: bool = True, seconds: float = COMMAND_SECONDS) -> Result:
        result = subprocess.run(
            [_client(), *words],
            env={**os.environ, "DOCKER_HOST": f"unix://{self.folder}/sock", "DOCKER_BUILDKIT": "1"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert not check or result.returncode == 0, f"docker {' '.join(words)}: {result.stderr[-4000:]}"
        return result

    def build(
        self, context: Path, *options: str, arguments: Mapping[str, str] | None = None, check: bool = True
    ) -> Result:
        """Build, over the host's network and through its proxy, with these --build-arg."""
        given = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy")}
        words = [
            word
            for name, value in {**given, **(arguments or {})}.items()
            for word in ("--build-arg", f"{name}={value}")
        ]
        return self.docker("build", "--network=host", "--progress=plain", *words, *options, str(context), check=check)

    def run(self, image: str, *command: str, options: Sequence[str] = ()) -> Result:
        """A container without a network, to its end: its own stdout, stderr and exit code."""
        return self.docker("run", "--rm", "--network=none", *options, image, *command, check=False)

    def left(self) -> list[str]:
        """What there still is of it: a folder, mounts, control groups, processes."""
        lines = (" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
        processes = [line for line in lines if str(self.folder) in line]
        folder = [str(self.folder)] if self.folder.exists() else []
        return [*folder, *_mounts(self.folder), *map(str, _groups(self.folder)), *processes]

    @contextmanager
    def running(self, image: str, *command: str, options: Sequence[str] = ()) -> Iterator[Container]:
        name = self.docker("run", "--detach", "--network=none", *options, image, *command).stdout.strip()
        try:
            yield Container(self, name)
        finally:
            self.docker("rm", "--force", name)


@contextmanager
def engine() -> Iterator[Engine]:
    """An engine, in the first folder whose file system carries its layers. Raises NoEngine, and then has left nothing
    either.
    """
    _install()
    why = ""
    for place in _places():
        folder = Path(tempfile.mkdtemp(prefix="gputune-engine-", dir=place))
        daemon = _started(folder)
        try:
            why = _fault(daemon, folder)
            if not why:
                yield Engine(folder)
                return
        finally:
            _ended(daemon, folder)
    raise NoEngine(f"dockerd does not start: {why}")


def _places() -> Iterator[str]:
    """In memory where there is plenty, which saves a quarter of a minute; else on a disk."""
    with suppress(OSError):
        if min(shutil.disk_usage("/dev/shm").free, psutil.virtual_memory().available) > PLENTY_BYTES:
            yield "/dev/shm"
    yield from (tempfile.gettempdir(), "/var/tmp")


def _install() -> None:
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    if os.geteuid():
        raise NoEngine("an engine of its own needs root")
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise NoEngine(f"{', '.join(missing)} not found, and there is no apt-get to install it")
    install = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", *missing]
    result = _apt(install)
    if result.returncode:  # without lists, or with old ones
        _apt(["apt-get", "update"])
        result = _apt(install)
    if result.returncode:
        raise NoEngine(f"apt-get cannot install {', '.join(missing)}: {_last_line(result.stderr)}")


def _apt(words: Sequence[str]) -> Result:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def _client() -> str:
    """The one that belongs to the engine: a newer bare client that comes first on PATH cannot build."""
    return "/usr/bin/docker" if Path("/usr/bin/docker").exists() else "docker"


def _started(folder: Path) -> subprocess.Popen[bytes]:
    words = ["dockerd", "--data-root", f"{folder}/root", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    words += ["--host", f"unix://{folder}/sock", "--storage-driver", "overlay2", "--bridge=none", "--iptables=false"]
    words += ["--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--cgroup-parent", f"/{folder.name}"]
    words += ["--exec-opt", "native.cgroupdriver=cgroupfs", "--config-file", f"{folder}/none.json"]
    (folder / "none.json").write_text("{}")  # not the machine's own
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _fault(daemon: subprocess.Popen[bytes], folder: Path) -> str:
    """Why it does not answer; nothing where it does."""
    deadline = time.monotonic() + START_SECONDS
    while daemon.poll() is None and time.monotonic() < deadline:
        if Engine(folder).docker("version", check=False).returncode == 0:
            return ""
        time.sleep(0.1)
    return _last_line((folder / "log").read_text(errors="replace")) or f"no answer within {START_SECONDS:g} s"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _ended(daemon: subprocess.Popen[bytes], folder: Path) -> None:
    """The daemon and what it started, its mounts, its control groups and its folder."""
    helper = folder / "exec/containerd/containerd.pid"
    pids = [int(helper.read_text())] if helper.exists() else []
    daemon.terminate()
    try:
        daemon.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for mount in reversed(_mounts(folder)):
        subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)
    shutil.rmtree(folder)
    for group in reversed(_groups(folder)):
        with suppress(OSError):
            group.rmdir()


def _mounts(folder: Path) -> list[str]:
    """What is mounted below a folder, in the order of mounting."""
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for place in places if place.startswith(f"{folder}/")]


def _groups(folder: Path) -> list[Path]:
    """The control groups that are an engine's own, those above before those below."""
    tops = [*CGROUPS.glob(folder.name), *CGROUPS.glob(f"*/{folder.name}")]
    return sorted(group for top in tops for group in [top, *(path for path in top.rglob("*") if path.is_dir())])

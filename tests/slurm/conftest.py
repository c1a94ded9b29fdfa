"""A Slurm of two nodes, n1 and n2, on this host: the real slurmctld, slurmd and munged, with keys, ports and folders
of their own.

Each node has eight CPUs by its own account, and two GPUs, which are character devices without a driver. As root only.
Where Slurm is missing it is installed from Debian's packages; where it cannot be had, the tests are skipped with the
reason.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from making import environ

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol")
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


class Cluster:
    """The running Slurm. `folder` is seen by both nodes, as a shared file system is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            name: value for name, value in environ(PATH=PATH).items() if not name.startswith(("SLURM_", "SRUN_"))
        } | {"SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._written = ""

    def start(self) -> None:
        with socket.socket() as one, socket.socket() as two, socket.socket() as three:
            for free in (one, two, three):
                free.bind(("127.0.0.1", 0))
            ports = [free.getsockname()[1] for free in (one, two, three)]
        self._written = self._configuration(ports)
        self._write(self._written)
        self._devices()
        self._munge()
        for words in (["slurmctld"], ["slurmd", "-N", "n1"], ["slurmd", "-N", "n2"]):
            self._daemon("-".join(words[::2]), [*words, "-D"])
        self.await_states("idle", "idle")

    def stop(self) -> None:
        for _, daemon in reversed(self._daemons):
            daemon.terminate()
        for _, daemon in reversed(self._daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def configure(self, **lines: object) -> None:
        """slurm.conf with these lines more, read by the running daemons."""
        added = "".join(f"{name}={value}\n" for name, value in lines.items())
        self._write(self._written + added)
        self.asked("scontrol", "reconfigure")

    def _write(self, configuration: str) -> None:
        """In one step, since a daemon may still be reading the one before, and ends where it is cut."""
        whole = self.folder / "slurm.conf.new"
        whole.write_text(configuration)
        whole.rename(self.folder / "slurm.conf")

    def asked(self, *words: str, env: Mapping[str, str] | None = None, **options: object) -> str:
        """What a command of Slurm's prints."""
        done = self.ran(*words, env=env, **options)
        assert done.returncode == 0, done
        return done.stdout

    def ran(
        self, *words: str, env: Mapping[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        whole = {**self.environ, **(env or {})}
        return subprocess.run(words, env=whole, capture_output=True, text=True, timeout=100, check=False, **options)

    def submitted(self, script: Path, env: Mapping[str, str]) -> tuple[str, int]:
        """A batch script's job, which has ended: its number, and its exit code. (`sbatch --wait` looks every ten
        seconds.)
        """
        number = self.asked("sbatch", "--parsable", "--output=out", script.name, env=env, cwd=script.parent).strip()
        told: dict[str, str] = {}

        def ended() -> bool:
            told.update(word.partition("=")[::2] for word in self.asked("scontrol", "show", "job", number).split())
            return told["JobState"] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")

        self.awaited(ended, seconds=100)
        return number, int(told["ExitCode"].partition(":")[0])

    def states(self) -> list[str]:
        return self.asked("sinfo", "-h", "-N", "-o", "%T").split()

    def await_states(self, *expected: str) -> None:
        """A node that was undrained is `idle*` until slurmctld has asked it once."""
        self.awaited(lambda: self.ran("sinfo", "-h", "-N", "-o", "%T").stdout.split() == list(expected))

    def awaited(self, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until it does, for so long at most, or until a daemon ends."""
        deadline = time.monotonic() + seconds
        while not holds():
            for name, daemon in self._daemons:
                assert daemon.poll() is None, f"{name} ended: {self._last_words(name)}"
            assert time.monotonic() < deadline, self._last_words("slurmctld")
            time.sleep(0.1)

    def _configuration(self, ports: list[int]) -> str:
        host, folder = socket.gethostname().split(".")[0], self.folder
        node = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 Gres=gpu:2"
        return f"""ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
GresTypes=gpu
NodeName=n1 Port={ports[1]} {node}
NodeName=n2 Port={ports[2]} {node}
PartitionName=all Nodes=n1,n2 Default=YES State=UP MaxTime=10
"""

    def _devices(self) -> None:
        """Slurm counts only device files as GPUs; these are /dev/null by other names."""
        lines = []
        for place, node in enumerate(("n1", "n2")):
            (self.folder / node).mkdir()
            for gpu in (2 * place, 2 * place + 1):
                os.mknod(self.folder / f"gpu{gpu}", 0o020666, os.makedev(1, 3))
            lines.append(f"NodeName={node} Name=gpu File={self.folder}/gpu[{2 * place}-{2 * place + 1}]\n")
        (self.folder / "gres.conf").write_text("".join(lines))
        (self.folder / "state").mkdir()

    def _munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        own = [f"--{what}-file={self.folder}/munge.{what}" for what in ("key", "pid", "log", "seed")]
        self._daemon("munged", ["munged", "-F", f"--socket={self.folder}/munge.socket", *own])
        self.awaited((self.folder / "munge.socket").exists)

    def _daemon(self, name: str, words: list[str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            daemon = subprocess.Popen(words, env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._daemons.append((name, daemon))

    def _last_words(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()[-2000:]


def _installed() -> None:
    """Skips where it cannot be."""
    missing = [program for program in PROGRAMS if not shutil.which(program, path=PATH)]
    if not missing:
        return
    lacking = f"{', '.join(missing)} of Slurm {'is' if len(missing) == 1 else 'are'} missing"
    if not shutil.which("apt-get"):
        pytest.skip(f"{lacking}, and there is no apt-get to install it")
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive", **os.environ}
    subprocess.run([*apt, "update"], env=quiet, capture_output=True, check=False)
    words = [*apt, "install", "-y", "--no-install-recommends", *PACKAGES]
    done = subprocess.run(words, env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{lacking}, and cannot be installed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


@pytest.fixture(scope="session")
def running() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("only root may start a Slurm of one's own")
    _installed()
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        Path(folder).chmod(0o711)  # munged insists on it, for its socket
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """As it was started: what a test configured or drained is undone."""
    yield running
    running.configure()

    def all_idle() -> bool:
        """A node may come back by itself meanwhile, and a health check that still runs may drain one again."""
        states = running.states()
        for node, state in zip(("n1", "n2"), states, strict=True):
            if state.startswith(("drain", "down")):
                running.ran("scontrol", "update", f"NodeName={node}", "State=RESUME")
        return states == ["idle", "idle"]

    running.awaited(all_idle)

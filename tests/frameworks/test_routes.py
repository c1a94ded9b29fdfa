"""Every way to start a Python below `gputune apply`, and what the innermost process reads back from the real torch.

ROUTES is the table. A row is run as `gputune apply profile.yaml -- WORDS` in a folder that holds FILES, a zipapp, and
two virtual environments without gputune. Most of a row is the import of torch, so two run at a time.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import zipapp
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from making import command, environ, gputune, profile, written

from gputune.profile import Fingerprint
from gputune.runtime import hook_file

pytestmark = pytest.mark.frameworks

VALUES = {"cudnn_benchmark": True, "matmul_precision": "tf32", "omp_threads": 1}

REACHED = "high True 1 1\n"
"""The level of FP32 matmul, cudnn.benchmark, torch's threads and OMP_NUM_THREADS."""
UNTOUCHED = "highest False 1 1\n"
EMPTIED = "highest False 1 None\n"
OWN = "own sitecustomize\n"
"""That of another environment, before the program."""

HOOK = "ignores PYTHONPATH, so torch's flags are set only where gputune install-hook was run for it"
NO_SITE = "runs no site code at startup, so torch's flags will not be set"


@dataclass(frozen=True, slots=True)
class Route:
    name: str
    words: str
    told: str
    """What the innermost processes print."""
    said: str = ""
    """What gputune says of the words before it runs them."""


ROUTES = [
    Route("a script", "python program.py", REACHED),
    Route("a module", "python -m program", REACHED),
    Route("a string", "python -c 'import program; program.show()'", REACHED),
    Route("a zipapp", "python program.pyz", REACHED),
    Route("python -P -s -u -W", "python -P -s -u -W ignore program.py", REACHED),
    Route("a shell script", "sh train.sh program.py", REACHED),
    Route("a Python below a Python", "python below.py", REACHED),
    Route("a Python of another environment", "elsewhere/bin/python program.py", OWN + REACHED),
    Route("a Jupyter kernel", "jupyter run program.py", REACHED),
    Route("multiprocessing by spawn", "python spawned.py", REACHED),
    Route("DataLoader workers by fork", "python loading.py fork", REACHED),
    Route("DataLoader workers by spawn", "python loading.py spawn", REACHED),
    Route("DataLoader workers by forkserver", "python loading.py forkserver", REACHED),
    # These are given no thread count by gputune; torchrun exports one thread itself.
    Route("torchrun", "torchrun --standalone --nproc-per-node 2 program.py", 2 * REACHED),
    Route("torchrun's module", "python -m torch.distributed.run --standalone --nproc-per-node 2 program.py",
          2 * REACHED),
    Route("accelerate launch", "accelerate launch --cpu --num_processes 1 --num_cpu_threads_per_process 1 program.py",
          REACHED),
    # Reached where the interpreter was given the hook, which Python reads beside its own sitecustomize.
    Route("python -I", "python -I program.py", UNTOUCHED, f"python -I {HOOK}"),
    Route("python -I, hooked", "hooked/bin/python -I program.py", OWN + REACHED),
    Route("python -E", "python -E program.py", UNTOUCHED, f"python -E {HOOK}"),
    Route("python -E, hooked", "hooked/bin/python -E program.py", OWN + REACHED),
    # Reached by nothing. MKL's variable is one that gputune sets too; here it makes torch's threads known.
    Route("python -S", "python -S without_site.py", UNTOUCHED, f"python -S {NO_SITE}"),
    Route("env -i", "env -i MKL_NUM_THREADS=1 elsewhere/bin/python program.py", OWN + EMPTIED,
          "env -i drops the variables that gputune sets"),
    Route("a sitecustomize put in front", "sh in_front.sh", OWN + UNTOUCHED),
]  # fmt: skip

FILES = {
    "program.py": """
import os, torch

def read():
    variable = os.environ.get("OMP_NUM_THREADS")
    level, searches = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    return f"{level} {searches} {torch.get_num_threads()} {variable}"

def show():
    print(read() + "\\n", end="")  # in one write: torchrun's ranks do not buffer, and share a pipe

if __name__ == "__main__":
    show()
""",
    "train.sh": 'python "$@"\n',
    "below.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'program.py'], check=True)\n",
    "spawned.py": """
import multiprocessing

def work():
    import program
    program.show()

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
""",
    "loading.py": """
import multiprocessing, sys
from torch.utils.data import DataLoader, Dataset
import program

class Told(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        assert type(multiprocessing.current_process()).__name__.lower() == sys.argv[1] + "process"
        return program.read()

if __name__ == "__main__":
    print(*DataLoader(Told(), batch_size=None, num_workers=1, multiprocessing_context=sys.argv[1]))
""",
    "without_site.py": f"""
import sys
sys.path.append({sysconfig.get_path("purelib")!r})
import program
program.show()
""",
    "in_front.sh": 'PYTHONPATH="$PWD/front:$PYTHONPATH" exec python program.py\n',
    "front/sitecustomize.py": f"print({OWN!r}, end='')\n",
    "zipped/__main__.py": "import program\nprogram.show()\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, here: Fingerprint) -> Path:
    folder = tmp_path_factory.mktemp("routes")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "zipped" / "program.py").write_text(FILES["program.py"])
    zipapp.create_archive(folder / "zipped", folder / "program.pyz")
    environment(folder / "elsewhere")
    environment(folder / "hooked")
    assert gputune("install-hook", "--python", str(folder / "hooked" / "bin" / "python")).returncode == 0
    written(folder, profile(VALUES, here))
    return folder


def environment(folder: Path) -> None:
    """Make a virtual environment with the packages of this one but gputune, and with a sitecustomize of its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if package.suffix != ".pth" and not package.name.startswith("gputune"):
            (packages / package.name).symlink_to(package)
    (packages / "sitecustomize.py").write_text(FILES["front/sitecustomize.py"])


def shell_like(folder: Path) -> dict[str, str]:
    """The environment of a shell in which this Python's environment is activated, and of a user who has no
    configuration.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return environ(PATH=path, PYTHONSAFEPATH="", HOME=str(folder), HF_HOME=str(folder / "huggingface"))


Ended = Mapping[str, Future[subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def ended(folder: Path, request: pytest.FixtureRequest) -> Ended:
    def run(route: Route) -> subprocess.CompletedProcess[str]:
        # TF32 is asked for, so that gputune has nothing to say about it on a GPU either.
        words = ["--numerics", "tf32", "profile.yaml", "--", *shlex.split(route.words)]
        return gputune("apply", *words, env=shell_like(folder), cwd=folder)

    selected = [item.callspec.params["route"] for item in request.session.items if item.name.startswith("test_route[")]
    with ThreadPoolExecutor(2) as pool:
        return {route.name: pool.submit(run, route) for route in selected}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_route(route: Route, ended: Ended) -> None:
    done = ended[route.name].result()
    assert (done.stdout, done.returncode) == (route.told, 0), done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("gputune: ")] == (
        [f"gputune: {route.said}"] if route.said else []
    )


def test_a_shell_that_evaluates_the_exports(folder: Path) -> None:
    script = 'eval "$(python -m gputune apply profile.yaml 2>/dev/null)"; python program.py'
    assert command(["sh", "-euc", script], shell_like(folder), cwd=folder).stdout == REACHED


@pytest.mark.parametrize("name", ["sudo", "ssh"])
def test_what_starts_its_command_in_another_environment_is_said(folder: Path, name: str) -> None:
    """Whether it is installed or not."""
    done = gputune("apply", str(folder / "profile.yaml"), "--", name, "-V")
    assert f"{name} gives its command an environment of its own: put gputune apply behind it\n" in done.stderr


def test_the_hook_is_one_file_that_comes_and_goes(folder: Path) -> None:
    [packages] = folder.glob("elsewhere/lib/python*/site-packages")
    before = set(packages.iterdir())
    install = ["install-hook", "--python", str(folder / "elsewhere" / "bin" / "python")]
    assert gputune(*install).returncode == 0
    assert set(packages.iterdir()) - before == {packages / "gputune-hook.pth"}
    assert (packages / "gputune-hook.pth").read_text() == hook_file.line()
    assert gputune(*install, "--remove").returncode == 0
    assert set(packages.iterdir()) == before
    assert gputune(*install, "--remove").stdout == f"Nothing to remove: there is no {packages / 'gputune-hook.pth'}\n"


def test_the_routes_are_explained() -> None:
    reached, beyond = " ".join(gputune("explain", "launching").stdout.split()).split("It does not reach")
    for route in ("scripts", "`python -m`", "zipapps", "shells", "torchrun", "`accelerate launch`", "Jupyter kernels",
                  "DataLoader and multiprocessing by fork, spawn and forkserver",
                  "other virtual environments"):  # fmt: skip
        assert route in reached
    for route in ("`python -I` and `-E`", "`python -S`", "`sudo`", "`ssh`", "`env -i`", "`sitecustomize`"):
        assert route in beyond

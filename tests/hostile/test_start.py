"""`gputune` starts whatever is on PYTHONPATH, and where it cannot start, `apply PROFILE -- CMD` runs CMD."""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import installed
import pytest
from installed import OWN, bare_python, planted, target
from making import H200, command, environ, executable, profile, written

from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

SHOW = "import os; print(os.environ.get('OMP_NUM_THREADS'), os.environ['PYTHONPATH'])"
INTERRUPTED = "gputune: interrupted; nothing was written\n"


@pytest.fixture
def script(tmp_path: Path) -> str:
    return installed.script(tmp_path / "bin")


@pytest.fixture
def path(tmp_path: Path) -> str:
    here = local_fingerprint(Host(environ=environ()))
    return written(tmp_path, profile({"omp_threads": 3}, replace(here, torch=None)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return target(tmp_path_factory.mktemp("whole") / "target")


class TestPlanted:
    """Modules of the user's, which exit when they are imported."""

    @pytest.mark.slow
    @pytest.mark.parametrize("name", OWN)
    def test_the_profile_is_applied_and_nothing_is_said(
        self, script: str, path: str, tmp_path: Path, name: str
    ) -> None:
        theirs = planted(tmp_path / "theirs", name)
        done = command([script, "apply", path, "--", sys.executable, "-c", SHOW], environ(PYTHONPATH=theirs))
        threads, python_path = done.stdout.split()
        assert (done.returncode, done.stderr, threads) == (0, "", "3")
        assert python_path.split(":")[-1] == theirs  # of the command, unchanged

    @pytest.mark.sampled(4)
    @pytest.mark.slow
    @pytest.mark.parametrize("entry", ["theirs", "./theirs", "link", "theirs:theirs/"])
    def test_however_the_folder_is_written(self, script: str, path: str, tmp_path: Path, entry: str) -> None:
        planted(tmp_path / "theirs", *OWN)
        (tmp_path / "link").symlink_to("theirs")
        env = environ(PYTHONPATH=entry)
        assert command([script, "show", path], env, cwd=tmp_path).returncode == 0
        done = command([script, "apply", path, "echo", "ran"], env, cwd=tmp_path)
        assert (done.stdout, done.stderr) == ("ran\n", "")

    @pytest.mark.slow
    def test_files_named_as_the_standard_librarys(self, script: str, path: str, tmp_path: Path) -> None:
        """All but those that Python's start, and pip's own script, import before gputune runs."""
        before = command([sys.executable, "-c", "import re, sys; print(*sys.modules)"]).stdout.split()
        names = {"signal", "json", "contextlib", "pathlib", "subprocess", "dataclasses", "fcntl"} - set(before)
        assert names
        env = environ(PYTHONPATH=planted(tmp_path / "theirs", *(f"{name}.py" for name in names)))
        for profile_path in (path, "/nowhere"):
            done = command([script, "apply", "--quiet", profile_path, "echo", "ran"], env)
            assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr

    @pytest.mark.slow
    def test_behind_the_shim_of_an_enclosing_apply(self, script: str, path: str, tmp_path: Path) -> None:
        env = environ(PYTHONPATH=planted(tmp_path / "theirs", *OWN))
        done = command([script, "apply", path, script, "apply", path, "echo", "ran"], env)
        assert (done.stdout, done.stderr) == ("ran\n", "")

    @pytest.mark.slow
    def test_where_the_installed_packages_are_on_it_too(self, script: str, path: str, tmp_path: Path) -> None:
        packages = [entry for entry in sys.path if entry.endswith("site-packages")]
        theirs = planted(tmp_path / "theirs", *OWN)
        env = environ(PYTHONPATH=os.pathsep.join([theirs, *packages, str(installed.HOUSE)]))
        done = command([script, "apply", path, "echo", "ran"], env)
        assert (done.stdout, done.stderr) == ("ran\n", "")

    @pytest.mark.slow
    def test_gputune_may_be_on_pythonpath_alone_behind_them(self, path: str, whole: Path, tmp_path: Path) -> None:
        theirs = planted(tmp_path / "theirs", *OWN)
        script = installed.script(tmp_path / "bin", bare_python())
        done = command([script, "apply", path, "echo", "ran"], environ(PYTHONPATH=f"{theirs}:{whole}"))
        assert (done.stdout, done.stderr) == ("ran\n", "")

    @pytest.mark.slow
    def test_python_m_in_a_working_folder_that_holds_them(self, path: str, tmp_path: Path) -> None:
        """And files named as all that Python itself does not import before it runs a module."""
        before = command([sys.executable, "-m", "this_module_prints"], environ(PYTHONPATH=prints(tmp_path))).stdout
        library = {"typing", "pathlib", "re", "enum", "json", "signal", "dataclasses", "subprocess"}
        library -= set(before.split())  # an environment's .pth files may import any of them
        names = [f"{name}.py" for name in ("gputune_start", *library)]
        theirs = planted(tmp_path / "theirs", *names, *(name for name in OWN if name != "gputune.py"))
        words = ["-m", "gputune", "apply", path, "echo", "ran"]
        for options, folder, python_path in (
            ([], theirs, ""),
            (["-P"], theirs, ""),
            ([], "/", theirs),
            (["-P"], "/", theirs),
        ):
            done = command([sys.executable, *options, *words], environ(PYTHONPATH=python_path), cwd=folder)
            assert (done.stdout, done.stderr) == ("ran\n", ""), (options, folder)

    @pytest.mark.slow
    def test_an_isolated_python_starts_gputune_beside_a_file_of_its_own_name(self, path: str, tmp_path: Path) -> None:
        theirs = planted(tmp_path / "theirs", "gputune.py", "gputune_start.py", "functools.py", *OWN)
        words = [sys.executable, "-I", "-m", "gputune", "apply", path, "sh", "-c", 'echo "$PYTHONPATH"']
        done = command(words, environ(PYTHONPATH=theirs), cwd=theirs)
        assert (done.stdout.rstrip("\n").split(":")[-1], done.stderr) == (theirs, "")
        in_it = [sys.executable, "-P", "-m", "gputune", "apply", path, "echo", "ran"]
        assert command(in_it, environ(), cwd=theirs).stdout == "ran\n"

    @pytest.mark.slow
    def test_a_program_with_a_file_of_the_starts_name_may_use_gputune(self, tmp_path: Path) -> None:
        theirs = planted(tmp_path / "theirs", "gputune_start.py")
        code = "import gputune, gputune.runtime.tuning; print(gputune.__version__)"
        done = command([sys.executable, "-c", code], environ(PYTHONPATH=theirs))
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.slow
    def test_the_torch_of_the_users_path_is_the_one_that_counts(self, script: str, tmp_path: Path) -> None:
        theirs = tmp_path / "theirs"
        (theirs / "torch").mkdir(parents=True)
        (theirs / "torch" / "__init__.py").touch()
        (theirs / "torch" / "version.py").write_text("__version__ = '9.9.9+theirs'\n")
        here = replace(local_fingerprint(Host(environ=environ())), torch="1.0")
        foreign = written(tmp_path, profile({"cudnn_benchmark": True}, here))
        done = command([script, "apply", "--dry-run", foreign], environ(PYTHONPATH=str(theirs)))
        assert "torch (1.0 there, 9.9.9+theirs here)" in done.stdout

    @pytest.mark.slow
    def test_torch_and_the_gpus_are_asked_and_benches_run(self, script: str, tmp_path: Path) -> None:
        names = [name for name in OWN if name != "typing_extensions.py"]  # which torch needs
        theirs = planted(tmp_path / "theirs", *names, text="mine = True\n")
        env = environ(PYTHONPATH=theirs, XDG_CACHE_HOME=str(tmp_path / "cache"))
        done = command([script, "probe", "--budget=quick", "--device=cpu", "--only=precision", "-o", "p.yaml"],
                       env, cwd=tmp_path)  # fmt: skip
        assert (done.returncode, "Matmul by dtype" in done.stdout) == (0, True), done.stderr
        checked = json.loads(command([script, "check", "--json"], env).stdout)
        assert checked["facts"]["libraries"]["torch"]
        assert not {gap["fact"] for gap in checked["facts"]["gaps"]} & {"libraries.torch", "nvml"}

    @pytest.mark.slow
    def test_a_dataset_beside_them_is_loaded_by_spawned_workers(self, script: str, tmp_path: Path) -> None:
        theirs = planted(tmp_path / "theirs", "gputune.py", "psutil.py")
        (tmp_path / "theirs" / "their_data.py").write_text(
            "from torch.utils.data import DataLoader\n"
            "class Squares:\n"
            "    def __len__(self): return 4096\n"
            "    def __getitem__(self, index): return float(index * index)\n"
            "def made(): return DataLoader(Squares(), 32, num_workers=1, multiprocessing_context='spawn')\n"
        )
        env = environ(PYTHONPATH=theirs, XDG_CACHE_HOME=str(tmp_path / "cache"))
        words = ["probe", "--budget=quick", "--device=cpu", "--only=dataset", "--dataset=their_data:made", "--json"]
        done = command([script, *words], env, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert {row["params"].get("workers") for row in found["measurements"]} > {0}, done.stderr


def prints(folder: Path) -> str:
    """A folder with a module that prints the names of all that were imported before it."""
    (folder / "printing").mkdir()
    (folder / "printing" / "this_module_prints.py").write_text("import sys\nprint(*sys.modules)\n")
    return str(folder / "printing")


FAULTS = {
    "nothing in the verb's file": ("gputune/cli/apply.py", ""),
    "nothing in the package": ("gputune/cli/__init__.py", ""),
    "a file cut short": ("gputune/cli/apply.py", "def apply(\n"),
    "no dependency": ("typer", None),
    "a dependency of another version": ("typer", "Typer = None\n"),
    "a dependency that exits": ("typer", "raise SystemExit(0)\n"),
    "a dependency that says a word and exits": ("typer", "import sys; sys.exit('not here')\n"),
    "a dependency that is upgraded at the moment": ("yaml", "raise RuntimeError('half\\nupgraded')\n"),
    "no memory": ("typer", "raise MemoryError\n"),
    "no end": ("typer", "def deeper(): deeper()\ndeeper()\n"),
    "no disk": ("typer", "raise OSError(5, 'Input/output error')\n"),
    "an exception that is none": ("typer", "class Odd(BaseException): pass\nraise Odd('odd\\x1b[31m\\nness')\n"),
    "an exception that cannot say what it is": ("typer", "class Odd(Exception): __str__ = None\nraise Odd\n"),
    "no gputune": ("gputune", None),
    "a setting's file": ("gputune/knobs/__init__.py", "raise RuntimeError('late')\n"),
    "a file that is imported late": ("gputune/runtime/reach.py", "raise SystemExit(0)\n"),
}

QUICK = ("nothing in the package", "no dependency", "a dependency that exits", "a file that is imported late")
"""Those that every run of the tests tries."""


class TestBroken:
    @pytest.fixture(
        scope="class", params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FAULTS]
    )
    def env(
        self, request: pytest.FixtureRequest, whole: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> dict[str, str]:
        """An environment with an installation that has a fault."""
        name, text = FAULTS[request.param]
        own = tmp_path_factory.mktemp("broken") / "target"
        shutil.copytree(whole, own, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        place = own / name
        if place.is_symlink():
            place.unlink()
            place = place.with_suffix(".py")
        elif text is None:
            shutil.rmtree(place)
        if text is not None:
            place.write_text(text)
        return environ(PYTHONPATH=str(own))

    def script(self, tmp_path: Path) -> str:
        return installed.script(tmp_path / "bin", bare_python())

    @pytest.mark.sampled(4)
    @pytest.mark.slow
    def test_the_command_runs_after_one_line(self, env: dict[str, str], tmp_path: Path) -> None:
        words = ["apply", "--quiet", "--numerics", "tf32", "--only=compile", "no.yaml", "--", "sh", "-c"]
        done = command([self.script(tmp_path), *words, 'echo "$PYTHONPATH"; exit 37'], env)
        assert (done.returncode, done.stdout) == (37, env["PYTHONPATH"] + "\n"), done.stderr
        assert done.stderr.startswith("gputune: ")
        assert done.stderr.endswith("; running sh unchanged\n")
        assert done.stderr[:-1].isprintable()

    def test_strict_refuses_in_one_line(self, env: dict[str, str], tmp_path: Path) -> None:
        done = command([self.script(tmp_path), "apply", "--strict", "no.yaml", "echo", "ran"], env)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (78, "", 1), done.stderr

    def test_a_command_that_does_not_exist_is_127(self, env: dict[str, str], tmp_path: Path) -> None:
        done = command([self.script(tmp_path), "apply", "no.yaml", "no-such-program"], env)
        assert done.returncode == 127
        assert done.stderr.endswith("gputune: no-such-program: No such file or directory\n")

    @pytest.mark.slow
    def test_other_verbs_are_one_line_and_70(self, env: dict[str, str], tmp_path: Path) -> None:
        done = command([self.script(tmp_path), "apply", "no.yaml"], env)
        if done.returncode != 2:  # a file that this needs not
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (70, "", 1), done.stderr
            assert done.stderr.endswith("; gputune --debug shows the traceback\n")
            assert "Traceback" in command([self.script(tmp_path), "--debug", "apply", "no.yaml"], env).stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.real
def test_an_installation_that_this_user_may_not_read(open_folder: Path) -> None:
    own = target(open_folder / "target")
    (own / "gputune").chmod(0o700)
    python = shutil.which("python3", path="/usr/bin")  # this one may be below a folder of root's
    user = ["setpriv", "--reuid=65534", "--clear-groups", str(python)]
    if (
        not shutil.which("setpriv")
        or command([*user, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode
    ):
        pytest.skip("no other user can run a Python here")
    words = [*user, installed.script(open_folder / "bin"), "apply", "no.yaml", "echo", "ran"]
    done = command(words, environ(PYTHONPATH=str(own)))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "ran\n", 1), done.stderr


class TestWords:
    """What is run where gputune cannot read its own command line."""

    def test_every_option_of_apply_is_known(self) -> None:
        import typer.main

        import gputune_start
        from gputune import cli

        cli.add_verbs("apply")
        [*options] = [
            one for one in typer.main.get_command(cli.app).commands["apply"].params if hasattr(one, "is_flag")
        ]
        flags = {name for one in options if one.is_flag for name in one.opts} - {"--dry-run"}
        valued = {name for one in options if not one.is_flag for name in one.opts}
        assert (flags - {"-h", "--help"}, valued) == (set(gputune_start.FLAGS), set(gputune_start.WITH_VALUE))

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            ("apply p -- a b", "a b"),
            ("apply p a -- b", "a -- b"),
            ("apply p a --strict", "a --strict"),
            ("--debug apply p a", "a"),
            ("apply --only x --skip=y p a", "a"),
            ("apply --only --strict p a", "a"),
            ("apply -- p -- a", "a"),
            ("apply - a", "a"),
            ("apply p", ""),
            ("apply p --", ""),
            ("apply p --quiet a", ""),
            ("apply --dry-run p a", ""),
            ("apply --help p a", ""),
            ("apply --nonsense p a", ""),
            ("apply --strict=1 p a", ""),
            ("apply", ""),
            ("apply --only", ""),
            ("check p a", ""),
            ("", ""),
        ],
    )
    def test_the_command_in_them(self, typed: str, words: str) -> None:
        import gputune_start

        assert gputune_start.command_of(typed.split()) == (words.split(), False)

    @pytest.mark.parametrize("typed", ["apply --strict p a", "--debug apply --quiet --strict -- p -- a"])
    def test_strict(self, typed: str) -> None:
        import gputune_start

        assert gputune_start.command_of(typed.split()) == (["a"], True)


class TestInterrupt:
    @pytest.mark.slow
    @pytest.mark.parametrize("place", ["typer.py", "gputune/cli/apply.py", "gputune/runtime/deciding.py"])
    @pytest.mark.parametrize("words", [["apply", "no.yaml", "echo", "ran"], ["apply", "--strict", "no.yaml", "true"]])
    def test_while_it_is_imported(self, tmp_path: Path, place: str, words: list[str]) -> None:
        own = target(tmp_path / "target")
        (own / place).with_suffix("").unlink(missing_ok=True)
        (own / place).write_text("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n")
        script = installed.script(tmp_path / "bin", bare_python())
        done = command([script, *words], environ(PYTHONPATH=str(own)))
        assert (done.returncode, done.stdout, done.stderr) == (130, "", INTERRUPTED)

    @pytest.mark.slow
    def test_in_a_destructor_it_is_not_lost(self, tmp_path: Path) -> None:
        own = target(tmp_path / "target")
        (own / "gputune" / "profile" / "__init__.py").write_text(
            "import os, signal, time\n"
            "class Dying:\n"
            "    def __del__(self): os.kill(os.getpid(), signal.SIGINT); time.sleep(0.01)\n"
            "Dying()\n"
            "time.sleep(5)\n"
        )
        script = installed.script(tmp_path / "bin", bare_python())
        done = command([script, "show", "no.yaml"], environ(PYTHONPATH=str(own)))
        assert (done.returncode, done.stdout, done.stderr) == (130, "", INTERRUPTED)

    @pytest.mark.slow
    def test_one_that_is_ignored_stays_ignored(self, script: str) -> None:
        done = command(["sh", "-c", 'trap "" INT; "$0" apply no.yaml grep SigIgn /proc/self/status', script])
        assert int(done.stdout.split()[1], 16) == 1 << (signal.SIGINT - 1)

    @pytest.mark.sampled(4)
    @pytest.mark.slow
    @pytest.mark.parametrize("words", [["apply", "{}", "sleep", "0"], ["check"], ["show", "{}"], ["--help"]])
    def test_at_any_moment(self, script: str, tmp_path: Path, words: list[str]) -> None:
        """From the first line of gputune's own on: what comes before that is Python's, and is counted by it."""
        import random
        import time

        path = written(tmp_path, profile(fingerprint=H200))
        seen: dict[str, int] = {}
        for _ in range(40):
            child = subprocess.Popen([script, *(word.format(path) for word in words)], env=environ(),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
            time.sleep(random.uniform(0, 0.4))
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=60)[1]
            if child.returncode == 130:
                assert said.endswith(INTERRUPTED)
            if re.search(r"gputune_start\.py.*, in (?!<module>)|/gputune/", said):
                pytest.fail(f"{child.returncode}: {said}")
            kind = f"{child.returncode} {'Traceback' * ('Traceback' in said)}"
            seen[kind] = seen.get(kind, 0) + 1
        print(words, seen)
        assert any(kind.startswith("130 ") for kind in seen)


class TestTooLarge:
    """The kernel refuses an environment, or one variable of it, that gputune made too large."""

    SIZE = "import os; print(len(os.environ['PYTHONPATH']), 'GPUTUNE_APPLY' in os.environ)"

    def large(self, path: str, script: str, *options: str) -> "subprocess.CompletedProcess[str]":
        longest = (128 << 10) - len("PYTHONPATH=") - 1
        words = [script, "apply", *options, path, "--", sys.executable, "-c", self.SIZE]
        return command(words, environ(PYTHONPATH="/no/such".ljust(longest, "x")))

    @pytest.fixture
    def carried(self, tmp_path: Path) -> str:
        return written(tmp_path, profile(fingerprint=local_fingerprint(Host(environ=environ()))))

    @pytest.mark.slow
    def test_a_variable(self, carried: str, script: str) -> None:
        done = self.large(carried, script)
        assert (done.returncode, done.stdout) == (0, "131060 False\n"), done.stderr
        assert done.stderr == (
            "gputune: with the settings the environment is larger than the kernel takes; "
            f"running {sys.executable} unchanged\n"
        )

    @pytest.mark.slow
    def test_strict_refuses(self, carried: str, script: str) -> None:
        done = self.large(carried, script, "--strict")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (78, "", 1)

    @pytest.mark.slow
    def test_all_of_it(self, carried: str, script: str, tmp_path: Path) -> None:
        """With a stack of 512 KiB it may be 128 KiB."""
        show = executable(tmp_path / "show", "#!/bin/sh\necho ${GPUTUNE_APPLY-none}\n")
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        words = [sys.executable, script, "apply", "--quiet", carried, str(show)]
        # The largest with which gputune itself is started.
        until = 'X=$(head -c $n /dev/zero | tr "\\0" x) "$0" "$@" 2>errors; do n=$((n - 64)); done; cat errors >&2'
        done = command(["sh", "-c", f"ulimit -s 512; n=131000; until {until}", *words], env, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "none\n"), done.stderr
        assert "larger than the kernel takes" in done.stderr

    def test_what_is_too_large_by_itself_is_126(self, carried: str, script: str) -> None:
        code = "from gputune.runtime.launch import launch; launch(['true', 'x' * (1 << 18)], {'A': 'b'})"
        done = command([sys.executable, "-c", code])
        assert (done.returncode, done.stderr.splitlines()[-1]) == (126, "gputune: true: Argument list too long")


LISTING = """
import os, sys, gputune_start
def replaced(*ignored):
    print(*(name for name in sys.modules if not name.startswith(("gputune", "__main__"))), flush=True)
    os._exit(0)
os.execvpe = replaced
gputune_start.main()
"""


@pytest.mark.timed
def test_apply_takes_at_most_2_2_times_its_imports(script: str, path: str) -> None:
    """CPU time, in turn with a Python that only imports what `apply` takes from the standard library and others."""
    names = command([sys.executable, "-c", LISTING, "apply", path, "true"]).stdout.split()
    code = f"import importlib\nfor name in {names}:\n    importlib.import_module(name)"
    words = {"apply": [script, "apply", path, "true"], "imports": [sys.executable, "-c", code]}
    took: dict[str, list[float]] = {name: [] for name in words}
    for _ in range(11):
        for name, one in words.items():
            child = subprocess.Popen(one, env=environ())
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = status
            assert status == 0
            took[name].append(used.ru_utime + used.ru_stime)
    assert statistics.median(took["apply"]) <= 2.2 * statistics.median(took["imports"]), took

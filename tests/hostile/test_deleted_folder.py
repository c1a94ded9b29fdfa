"""A working folder that was deleted: every Python below `gputune apply` starts as ever, and every verb answers.

A relative entry of the path then leads nowhere, and whoever asks for the working folder gets an error.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
from making import ELSEWHERE, environ, profile, written

from gputune.runtime.environment import SHIM

MAKE_GONE = 'cd "$0" && rmdir "$0" && exec "$@"'
"""For a shell: start a command in a folder that is deleted."""


def pythons() -> dict[str, str]:
    versions = [f"{major}.{minor}" for major, minors in ((2, [7]), (3, range(6, 16))) for minor in minors]
    places = [*os.environ["PATH"].split(os.pathsep), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found = {}
    for version in versions:
        for place in places:
            path = Path(place, f"python{version}")
            if "shims" not in place and os.access(path, os.X_OK):
                found.setdefault(version, str(path))
    return found


PYTHONS = pythons()


@pytest.fixture
def gone(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "gone"
    folder.mkdir()
    yield folder
    assert not folder.exists()


def started(gone: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    whole = ["sh", "-c", MAKE_GONE, str(gone), *words]
    return subprocess.run(
        whole,
        capture_output=True,
        text=True,
        timeout=120,
        env=environ(PYTHONDONTWRITEBYTECODE="1", **variables),
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize(
    "behind", ["", ":", ":relative", "::/elsewhere"], ids=["alone", "empty", "relative", "between"]
)
def test_a_python_starts_as_it_does_without_the_shim(version: str, behind: str, tmp_path: Path) -> None:
    found = []
    for path in (f"/no/such/folder{behind}", f"{SHIM}{behind}"):
        gone = tmp_path / "gone"
        gone.mkdir()
        done = started(gone, PYTHONS[version], "-c", "print(1)", PYTHONPATH=path, GPUTUNE_APPLY="{}")
        said = [] if done.returncode else done.stderr.splitlines()  # newer ones do not bear such a path themselves
        found.append((done.returncode, done.stdout, said))
    assert found[1] == found[0]


@pytest.mark.parametrize("version", [version for version in PYTHONS if version != "2.7"])
def test_the_sitecustomize_behind_the_shim_runs(version: str, tmp_path: Path, gone: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs')\n")
    done = started(gone, PYTHONS[version], "-c", "print(1)", PYTHONPATH=f"{SHIM}:{tmp_path}", GPUTUNE_APPLY="{}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "theirs\n1\n", "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["show", "{profile}"], 0, ""),
        (["show", "profile.yaml"], 2, "profile.yaml: cannot be read: No such file or directory"),
        (["merge", "-o", "-", "{profile}"], 0, "took "),
        (["merge", "-o", "merged.yaml", "{profile}"], 2, "-o merged.yaml: No such file or directory"),
        (["explain", "profile-schema"], 0, ""),
        (["explain", "shm_size"], 0, ""),
        (["deploy", "docker"], 0, ""),
        (["deploy", "kubernetes", "configmap", "--profile", "{profile}"], 0, ""),
        (["deploy", "slurm", "sbatch", "--", "python", "train.py"], 0, ""),
        (["probe"], 2, "-o profile.yaml: No such file or directory"),
        (["probe", "-o", "-", "--shapes", "shapes.txt"], 2, "--shapes shapes.txt: No such file or directory"),
        (["probe", "-o", "-", "--dataset", "data.py:make"], 2, "there is no file data.py"),
        (["batch-size", "train.py:make"], 2, "there is no file train.py"),
        (["tune", "--", "python", "train.py"], 2, "train.py: there is no such file"),
        (["check", "--only", "cpu_quota", "--nfd", "."], 2, "--nfd .: cannot be written to: No such file or directory"),
        (["check", "--only", "cpu_quota", "--python", "./python"], 2, "no executable has that name"),
        (["install-hook", "--python", "./python"], 2, "no executable has that name"),
        (["apply", "profile.yaml", "--", "echo", "ran"], 0, "No such file or directory"),
        (["apply", "{profile}"], 0, ""),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_verb_answers(words: list[str], code: int, said: str, tmp_path: Path, gone: Path) -> None:
    path = written(tmp_path, profile(fingerprint=ELSEWHERE))
    done = forked.gputune(*(word.format(profile=path) for word in words), cwd=gone, gone=True)
    assert (done.returncode, "Traceback" in done.stderr, "bug in gputune" in done.stderr) == (code, False, False)
    assert said in done.stderr
    if code:
        assert done.stderr.count("\n") == 1
    if "echo" in words:
        assert done.stdout == "ran\n"


@pytest.mark.slow
def test_gputune_itself_starts(tmp_path: Path, gone: Path) -> None:
    path = written(tmp_path, profile(fingerprint=ELSEWHERE))
    done = started(gone, sys.executable, "-P", "-m", "gputune", "apply", path, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("variable", ["TORCHINDUCTOR_CACHE_DIR", "TMPDIR", "XDG_CACHE_HOME", "HOME", "LD_LIBRARY_PATH"])
def test_a_relative_folder_in_a_variable_is_no_fault_of_a_check(variable: str, gone: Path) -> None:
    done = started(gone, sys.executable, "-P", "-m", "gputune", "check", **{variable: "relative"})
    assert (done.returncode, done.stderr) in [(0, ""), (1, "")]


@pytest.mark.slow
def test_a_torch_that_does_not_bear_it_is_told_with_the_reason(gone: Path) -> None:
    """torch's oneMKL ends the process that loads it."""
    done = started(gone, sys.executable, "-P", "-m", "gputune", "status")
    if done.returncode:
        assert "in a working folder that was deleted" in done.stderr
        assert (done.returncode, done.stderr.count("\n")) == (3, 1)


def test_the_way_to_a_cached_profile_is_found_all_the_same(tmp_path: Path, gone: Path) -> None:
    (tmp_path / "profile.yaml").touch(mode=0o600)
    asks = "import pathlib, sys; from gputune.host import trust; print(trust.fault(pathlib.Path(sys.argv[1])))"
    done = started(gone, sys.executable, "-P", "-c", asks, str(tmp_path / "profile.yaml"))
    assert (done.stdout, done.stderr) == ("None\n", "")

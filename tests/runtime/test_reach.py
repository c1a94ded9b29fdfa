"""What a command's own words tell about where torch's flags cannot follow."""

import pytest

from gputune.runtime.reach import beyond_reach


@pytest.mark.parametrize(
    "words",
    [
        "python train.py",
        "python train.py -I",
        "python -m train -S",
        "python -c pass -E",
        "python3.12 -u -W ignore -X dev train.py",
        "python -W I train.py",
        "python -Wignore -B train.py",
        "python - -I",
        "python",
        "torchrun -I train.py",
        "env A=1 python train.py",
        "bash -c true",
        "env python train.py -i",
        "env A=1 grep -i x",
        "",
    ],
)
def test_nothing_speaks_against_it(words: str) -> None:
    assert beyond_reach(words.split()) is None


@pytest.mark.parametrize(
    "words", ["python -I train.py", "/opt/bin/python3.13t -uE -m train", "python -W ignore -I -c 1"]
)
def test_a_python_that_ignores_pythonpath(words: str) -> None:
    why = beyond_reach(words.split())
    assert why is not None
    assert why.endswith("ignores PYTHONPATH, so torch's flags are set only where gputune install-hook was run for it")


def test_a_python_that_runs_nothing_at_its_start() -> None:
    assert beyond_reach(["python", "-BS", "train.py"]) == (
        "python -S runs no site code at startup, so torch's flags will not be set"
    )


@pytest.mark.parametrize(
    "words", ["sudo python train.py", "/usr/bin/ssh node1 python train.py", "kubectl exec pod -- python"]
)
def test_a_program_that_gives_its_command_another_environment(words: str) -> None:
    assert "gives its command an environment of its own: put gputune apply behind it" in str(
        beyond_reach(words.split())
    )


def test_an_emptied_environment() -> None:
    assert beyond_reach(["env", "-i", "python", "train.py"]) == "env -i drops the variables that gputune sets"

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


IGNORES = "ignores PYTHONPATH, so torch's flags are set only where gputune install-hook was run for it"
OWN = "gives its command an environment of its own: put gputune apply behind it"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("python -I train.py", IGNORES),
        ("/opt/bin/python3.13t -uE -m train", IGNORES),
        ("python -W ignore -I -c 1", IGNORES),
        ("python -BS train.py", "python -S runs no site code at startup, so torch's flags will not be set"),
        ("sudo python train.py", OWN),
        ("/usr/bin/ssh node1 python train.py", OWN),
        ("kubectl exec pod -- python", OWN),
        ("env -i python train.py", "env -i drops the variables that gputune sets"),
    ],
)
def test_where_flags_cannot_follow_it_says_why(words: str, why: str) -> None:
    assert str(beyond_reach(words.split())).endswith(why)

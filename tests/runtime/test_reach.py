"""What a command's own words tell about where torch's flags cannot follow."""

import shlex
import sys
from pathlib import Path

import pytest
from making import environ, gputune, profile, written

from gputune.host import Host
from gputune.runtime.environment import SHIM
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.reach import beyond_reach, is_cut_off


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
        "env A=1 B=PYTHONPATH=x python train.py",
        f"env PYTHONPATH=src:{SHIM} python train.py",
        "env -u HOME -C /tmp python train.py",
        "env",
        "grep -r python -I .",
        "nice -n 5 python train.py -I",
        "sh job.sh -c 'PYTHONPATH=x python'",
        "sh -c",
        "sh -c 'PYTHONPATH=src:$PYTHONPATH python train.py'",
        "sh -c 'export PYTHONPATH=\"${PYTHONPATH:-}:src\"; python train.py'",
        "sh -c 'python train.py PYTHONPATH=x'",
        "sh -c 'echo python -I; python train.py'",
        "sh -c 'PYTHONPATH=x ls; python train.py'",
        "sh -c 'echo \"unfinished'",
        "srun --export=ALL,A=1 python train.py",
        "env -u GPUTUNE_APPLY python train.py",
        "srun -n 2 python train.py",
        "",
    ],
)
def test_nothing_speaks_against_it(words: str) -> None:
    assert beyond_reach(shlex.split(words)) is None


IGNORES = "ignores PYTHONPATH, so torch's flags are set only where gputune install-hook was run for it"
OWN = "gives its command an environment of its own: put gputune apply behind it"
NO_SITE = "python -S runs no site code at startup, so torch's flags will not be set"
REPLACED = "PYTHONPATH is replaced behind gputune apply, so torch's flags will not be set: set it in front of gputune"
OR_HOOK = f"{REPLACED}, or run gputune install-hook for this Python"


@pytest.mark.parametrize(
    ("words", "why", "python"),
    [
        ("python -I train.py", IGNORES, "python"),
        ("/opt/bin/python3.13t -uE -m train", IGNORES, "/opt/bin/python3.13t"),
        ("python -W ignore -I -c 1", IGNORES, "python"),
        ("python -BS train.py", NO_SITE, None),
        ("python -I -B -S train.py", NO_SITE, None),
        ("nohup nice -n 5 python -I train.py", IGNORES, "python"),
        ("timeout 60 env A=1 python -E train.py", IGNORES, "python"),
        ("sudo python train.py", OWN, None),
        ("/usr/bin/ssh node1 python train.py", OWN, None),
        ("kubectl exec pod -- python", OWN, None),
        ("time sudo python train.py", OWN, None),
        ("env -i python train.py", "env -i drops the variables that gputune sets", None),
        ("env -vi A=1 python train.py", "env -i drops the variables that gputune sets", None),
        ("srun --export=NONE python", "srun --export without ALL drops the variables that gputune sets", None),
        ("env PYTHONPATH=src python train.py", OR_HOOK, "python"),
        ("env PYTHONPATH= python train.py", OR_HOOK, "python"),
        ("env -u PYTHONPATH python train.py", OR_HOOK, "python"),
        ("env -uPYTHONPATH python train.py", OR_HOOK, "python"),
        ("env --unset=PYTHONPATH python train.py", OR_HOOK, "python"),
        ("sh -c 'PYTHONPATH=src torchrun train.py'", REPLACED, None),
        ("env -S 'PYTHONPATH=src python' train.py", OR_HOOK, "python"),
        ("env PYTHONPATH=src torchrun train.py", REPLACED, None),
        ("env PYTHONPATH=src nohup /a/python train.py", OR_HOOK, "/a/python"),
        ("env PYTHONPATH=src python -S train.py", NO_SITE, None),
        ("bash -c 'PYTHONPATH=src python train.py'", OR_HOOK, "python"),
        ("bash -lc 'cd x && exec env PYTHONPATH=src python train.py'", OR_HOOK, "python"),
        ("bash -o pipefail -c 'export PYTHONPATH=src\npython train.py | tee log'", OR_HOOK, "python"),
        ("sh -c 'unset PYTHONPATH; if true; then python train.py; fi'", OR_HOOK, "python"),
        ("sh -c 'sudo python train.py'", OWN, None),
        ("sh -c 'ls; python -I train.py'", IGNORES, "python"),
    ],
)
def test_where_flags_cannot_follow_it_says_why(words: str, why: str, python: str | None) -> None:
    beyond = beyond_reach(shlex.split(words))
    assert beyond is not None
    assert beyond.why.endswith(why)
    assert beyond.python == python


@pytest.mark.parametrize(
    ("environ", "is_cut"),
    [
        ({}, False),
        ({"PYTHONPATH": "/src"}, False),
        ({"GPUTUNE_APPLY": "{}", "PYTHONPATH": f"/src:{SHIM}"}, False),
        ({"GPUTUNE_APPLY": "{}", "PYTHONPATH": "/src"}, True),
        ({"GPUTUNE_APPLY": "{}"}, True),
    ],
)
def test_a_process_can_tell_that_pythonpath_was_replaced_above_it(environ: dict[str, str], is_cut: bool) -> None:
    assert is_cut_off(environ) == is_cut


@pytest.mark.slow
def test_where_pythonpath_was_replaced_apply_warns_and_status_ends_with_1(tmp_path: Path) -> None:
    path = written(tmp_path, profile({"cudnn_benchmark": True}, local_fingerprint(Host())))
    asks = [sys.executable, "-m", "gputune", "status"]
    seen = gputune("apply", path, "--", "env", f"PYTHONPATH={tmp_path}", *asks)
    assert seen.stderr.splitlines() == [
        f"gputune: {OR_HOOK}",
        "gputune: PYTHONPATH was replaced behind gputune apply, which does not reach this Python; extend it instead",
    ]
    assert seen.returncode == 1
    later = gputune(
        "apply", path, "--", "sh", str(script(tmp_path, f"export PYTHONPATH={tmp_path}; {shlex.join(asks)}"))
    )
    assert (later.returncode, later.stderr.count("\n")) == (1, 1)
    extended = gputune("apply", path, "--", "sh", "-c", f'PYTHONPATH="{tmp_path}:$PYTHONPATH" {shlex.join(asks)}')
    assert (extended.returncode, extended.stderr) == (0, "")
    in_front = gputune("apply", path, "--", *asks, env=environ(PYTHONPATH=str(tmp_path)))
    assert (in_front.returncode, in_front.stderr) == (0, "")


def script(folder: Path, text: str) -> Path:
    (folder / "job.sh").write_text(text)
    return folder / "job.sh"

"""Ordinary training scripts end as they would without gputune, whatever is put into them.

Each is run plainly and with everything put in: exit code, stdout and stderr are the same but for gputune's own lines.
Numbers that half precision changes are rounded in the scripts. `expected.py` says what becomes of each setting.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from making import command
from traps import running
from traps.expected import LOADS, TRAPS, Trap
from traps.running import ALL, Ended, environment

from gputune.live.applied import Applied

GIVEN = [one for one in os.environ.get("GPUTUNE_TEST_TORCHES", "").split(":") if one]
PYTHONS = [pytest.param(python, id=Path(python).parents[1].name) for python in GIVEN or [sys.executable]]
"""The interpreters whose torch is asked."""
pytestmark = [pytest.mark.torches, pytest.mark.parametrize("python", PYTHONS)]


@cache
def version(python: str) -> tuple[int, ...]:
    done = command([python, "-c", "import torch; print(torch.__version__)"], environment(None))
    return tuple(map(int, done.stdout.split(".")[:2]))


def run(python: str, name: str, folder: Path, put_in: bool, trap: Trap = Trap()) -> Ended:  # noqa: B008
    folder.mkdir(exist_ok=True)
    env = environment({**ALL, "compile": trap.compiles} if put_in else None, flags=trap.flags)
    if trap.fresh:
        return running.fresh(python, trap.script or name, folder, env, trap.words, trap.argv)
    return running.forked(python, trap.script or name, folder, env, trap.argv)


def own_line(stderr: str) -> str:
    lines = stderr.splitlines()
    frames = [line for line in lines if line.startswith("  File ") and "/torch/" not in line]
    return f"{frames[-1]}: {lines[-1]}"


def faults(said: Iterable[str]) -> list[str]:
    return [line for line in said if re.match("(nothing was put into the program|settings were not).*Error", line)]


def unexpected(rows: Mapping[str, Applied], expected: Mapping[str, str]) -> dict[str, str]:
    names = rows.keys() | expected.keys()
    return {name: str(rows.get(name)) for name in names if not is_as(rows.get(name), expected.get(name, ""))}


def is_as(row: Applied | None, expected: str) -> bool:
    status, _, words = expected.partition(": ")
    parts = words.split("; ")
    if row is None or (row.status, len(row.reasons)) != (status, len(parts)):
        return False
    return all(part in str(why) for why, part in zip(row.reasons, parts, strict=True))


def marks(trap: Trap) -> list[Any]:
    return [pytest.mark.xfail(reason=trap.fault, strict=True)] if trap.fault else []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(trap)) for name, trap in TRAPS.items()])
def test_a_program_ends_as_it_would(python: str, name: str, tmp_path: Path) -> None:
    trap = TRAPS[name]
    if version(python) < trap.since:
        pytest.skip("not in this torch")
    plain = run(python, name, tmp_path / "plain", False, trap)
    put = run(python, name, tmp_path / "put", True, trap)
    assert (put.code, put.stdout) == (plain.code, plain.stdout), f"{plain.stderr[-2000:]}\n--\n{put.stderr[-2000:]}"
    shown: Callable[[str], str] = own_line if trap.raises else str
    assert shown(put.stderr) == shown(plain.stderr)
    assert unexpected(put.rows, trap.rows) == {}
    assert faults(put.said) == []


def test_no_script_is_forgotten(python: str) -> None:
    scripts = {path.stem for path in (running.HERE / "scripts").glob("*.py")}
    assert scripts == {"load", *(trap.script or name for name, trap in TRAPS.items())}


@pytest.mark.parametrize("name", LOADS)
def test_what_is_saved_with_everything_put_in_is_loaded_without_and_the_other_way_round(
    python: str, name: str, tmp_path: Path
) -> None:
    for put_in in (False, True):
        run(python, "save", tmp_path / str(put_in), put_in)
    ended = {
        (saved, loaded): run(python, name, tmp_path / str(saved), loaded, LOADS[name])
        for saved in (False, True)
        for loaded in (False, True)
    }
    first = ended[False, False]
    assert (first.code, first.rows) == (0, {})
    assert unexpected(ended[False, True].rows, LOADS[name].rows) == {}
    for one in ended.values():
        assert (one.code, one.stdout, one.stderr) == (0, first.stdout, first.stderr)


def test_two_runs_from_the_same_seed_are_the_same_to_the_last_bit(python: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        run(python, "same_seed_twice", tmp_path / folder, True)
    one, two = ((tmp_path / folder / "twice.pt").read_bytes() for folder in ("one", "two"))
    assert one == two


def test_switched_off_nothing_is_done_and_nothing_said(python: str, tmp_path: Path) -> None:
    plain = run(python, "mlp", tmp_path, False)
    off = running.forked(python, "mlp", tmp_path, {**environment(ALL), "GPUTUNE_DISABLE": "1"})
    assert off == plain


def test_a_program_that_never_trains_hears_nothing(python: str, tmp_path: Path) -> None:
    env = environment(ALL)
    del env["GPUTUNE_REPORT"]
    assert running.forked(python, "inference", tmp_path, env) == run(python, "inference", tmp_path, False)


def test_the_report_for_people_says_each_setting_in_a_line(python: str, tmp_path: Path) -> None:
    done = running.forked(python, "mlp", tmp_path, {**environment(ALL), "GPUTUNE_REPORT": "1"})
    assert [line.split(": ", 1)[1] for line in done.said[1:]] == [
        "amp_dtype bfloat16: applied (profile), put into Sequential",
        "channels_last None: skipped (torch), it has no 2-d convolutions",
        "fused_optimizer True: applied (profile), put into Sequential",
    ]

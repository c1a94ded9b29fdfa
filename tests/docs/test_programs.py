"""Each kind of program in docs/programs.md is one that the tests run with and without gputune."""

import re

from pages import ROOT
from traps.expected import TRAPS
from traps.running import HERE

PAGE = (ROOT / "docs" / "programs.md").read_text()
ROWS = {cells[0]: re.findall(r"`(\w+)`", cells[-1]) for line in PAGE.splitlines() if line.startswith("| ")
        for cells in [line.strip("| ").split(" | ")] if cells[0] != "program"}  # fmt: skip
"""A kind of program, and the tests' programs that are of that kind."""


def test_each_test_that_a_row_names_is_run() -> None:
    named = {name for names in ROWS.values() for name in names}
    assert len(named) > 50
    assert named <= TRAPS.keys()
    assert {name for name in named if not (HERE / "scripts" / f"{TRAPS[name].script or name}.py").exists()} == set()


def test_a_fault_that_is_known_is_promised_nowhere() -> None:
    assert {name for names in ROWS.values() for name in names if TRAPS[name].fault} == set()


def test_each_row_names_a_test() -> None:
    assert {kind for kind, names in ROWS.items() if not names} == set()

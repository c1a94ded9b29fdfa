"""What programs do with their files: they find what they did, and the user's files stay as they are."""

import os
from pathlib import Path

import pytest

from .conftest import SCRIPTS, Users, digest

pytestmark = pytest.mark.slow
OLD = ("last.pt", "prev.pt", "old_1.pt", "old_2.pt")


def habits() -> list[str]:
    known: dict[str, object] = {"__name__": "habits"}
    exec((SCRIPTS / "habits.py").read_text(), known)
    return list(known["HABITS"])  # type: ignore[call-overload]


def populate(folder: Path) -> None:
    """Each habit has a folder of its own, with files of an earlier run, and a link to the folder that they are in."""
    for name in habits():
        inner = folder / name / "ck"
        inner.mkdir(parents=True)
        for old in OLD:
            (inner / old).write_text(f"of the last run: {old}")
            os.utime(inner / old, (10**9, 10**9))
        (folder / name / "linked").symlink_to("ck")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_program_sees_what_it_did_and_the_users_files_stay(users: Users, tmp_path: Path, when: str) -> None:
    plain = Users(tmp_path / "plain", tmp_path / "none")
    for one in (users, plain):
        populate(one.folder)
    before = digest(users.home)
    ever = plain.run("habits.py").splitlines()
    assert [line.split()[0] for line in ever] == habits()
    assert not [line for line in ever if " raised " in line]
    assert users.run("habits.py", when=when, libraries="torch").splitlines() == ever
    assert digest(users.home) == before

"""A script that renames, links, looks for and deletes what it saved, in a folder with checkpoints of an earlier run."""

import pytest

from .conftest import Users, digest

pytestmark = pytest.mark.slow
OLD = ("old_1.pt", "old_2.pt", "step_0.pt", "last.pt")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_it_finds_its_own_and_the_users_stay(users: Users, when: str) -> None:
    folder = users.folder / "ckpt"
    folder.mkdir()
    for name in OLD:
        (folder / name).write_text("of the last run")
    before = digest(users.home)
    assert users.run("own_files.py", when=when, libraries="torch") == "fine\n"
    assert digest(users.home) == before
    assert users.saved() == {"ckpt/step_2.pt", "ckpt/last.pt", "ckpt/best.pt"}


def test_without_redirection_it_is_as_ever(users: Users) -> None:
    (users.folder / "ckpt").mkdir()
    (users.folder / "ckpt" / "old_1.pt").write_text("of the last run")
    assert users.run("own_files.py") == "fine\n"
    assert users.files() == {"ckpt/step_2.pt", "ckpt/last.pt", "ckpt/best.pt"}

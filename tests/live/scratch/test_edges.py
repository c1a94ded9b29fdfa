"""Ways by which a program could reach the user's own files, each as a small script."""

from textwrap import dedent

import pytest

from .conftest import Users, digest

pytestmark = pytest.mark.slow


def run(users: Users, source: str, **more: str) -> str:
    """What a script prints, which leaves the user's files as they are."""
    script = users.home.parent / "script.py"
    script.write_text(dedent(source))
    before = digest(users.home)
    printed = users.run(script, when="before", **more)
    assert digest(users.home) == before
    return printed


def test_a_file_that_is_emptied_through_a_descriptor(users: Users) -> None:
    (users.folder / "log").write_text("old")
    source = """
        import os
        file = os.open("log", os.O_WRONLY | os.O_TRUNC)
        os.write(file, b"new")
        print(open("log").read())
        try:
            os.open("none", os.O_WRONLY | os.O_TRUNC)
        except FileNotFoundError as error:
            print(error.filename)
    """
    assert run(users, source) == "new\nnone\n"

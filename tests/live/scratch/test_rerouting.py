"""Functions that get another path."""

import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from gputune.live.scratch._rerouting import reroute

LIBRARY = '''
def save(one, path, *rest, named=None):
    """Saves."""
    return one, path, rest, named

def by_default(path="here", other=1):
    return path, other

def by_name(*, path):
    return path

class Model:
    def save(self, *words, **named):
        return words, named

    @classmethod
    def load(cls, path):
        return cls, path

    @staticmethod
    def check(path):
        return path
'''


@pytest.fixture
def library() -> Iterator[Any]:
    made = sys.modules["made_library"] = ModuleType("made_library")
    exec(LIBRARY, vars(made))
    yield made
    del sys.modules["made_library"]


def other(path: Any) -> Any:
    return f"other {path}"


def test_by_place_and_by_name(library: Any) -> None:
    reroute(library, "save", "path", other)
    assert (
        library.save(1, "a") == library.save(1, path="a") == library.save(path="a", one=1) == (1, "other a", (), None)
    )
    assert library.save(1, "a", 2, named=3) == (1, "other a", (2,), 3)


def test_name_signature_and_docstring_stay(library: Any) -> None:
    before = library.save
    reroute(library, "save", "path", other)
    assert (library.save.__name__, library.save.__doc__) == ("save", "Saves.")
    assert inspect.signature(library.save) == inspect.signature(before)


def test_faults_of_the_caller_are_told_as_ever(library: Any) -> None:
    reroute(library, "save", "path", other)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'path'"):
        library.save(1)
    with pytest.raises(TypeError, match="multiple values for argument 'path'"):
        library.save(1, "a", path="b")


def test_a_path_by_default(library: Any) -> None:
    reroute(library, "by_default", "path", other)
    assert library.by_default() == ("other here", 1)
    assert library.by_default(other=2) == ("other here", 2)


def test_by_name_only(library: Any) -> None:
    reroute(library, "by_name", "path", other)
    assert library.by_name(path="a") == "other a"


def test_methods_of_all_kinds(library: Any) -> None:
    for name in ("save", "load", "check"):
        reroute(library, f"Model.{name}", "path", other)

    class Own(library.Model):  # type: ignore[misc]
        pass

    assert Own().save("a", "b", c=1) == (("other a", "b"), {"c": 1})
    assert Own().save(path="a") == ((), {"path": "other a"})
    assert Own.load("a") == (Own, "other a")
    assert Own.check("a") == "other a"


def test_wherever_it_is_known(library: Any) -> None:
    user = sys.modules["made_user"] = ModuleType("made_user")
    try:
        user.keep = library.save  # type: ignore[attr-defined]
        reroute(library, "save", "path", other)
        assert user.keep is library.save
    finally:
        del sys.modules["made_user"]


def test_what_a_library_does_not_have(library: Any) -> None:
    before = dict(vars(library))
    for path in ("nothing", "Nothing.save", "Model.nothing"):
        reroute(library, path, "path", other)
    assert vars(library) == before
    with pytest.raises(LookupError, match="by_default has no parameter nothing"):
        reroute(library, "by_default", "nothing", other)


def test_a_class(library: Any) -> None:
    class Opened:
        def __init__(self, path: str) -> None:
            self.path = path

    library.Opened = Opened
    reroute(library, "Opened", "path", other)
    assert isinstance(library.Opened("a"), Opened)
    assert library.Opened(path="a").path == "other a"

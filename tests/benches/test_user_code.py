"""What a user names as a callable: refused before anything is measured, or called, and its faults told in one line."""

import sys

import pytest

from gputune.benches import _user_code
from gputune.benches._user_code import UserCodeError, call, check
from gputune.errors import UsageError


@pytest.fixture(autouse=True)
def _imports(monkeypatch):
    paths, words = list(sys.path), list(sys.argv)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # another test's
    before = set(sys.modules)
    yield
    sys.path[:], sys.argv[:] = paths, words
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def written(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "names no callable"),
        ("train.py", "names no callable"),
        ("train.py:", "names no callable"),
        (":make", "names no callable"),
        ("train.py:a b", "names no callable"),
        ("nowhere/train.py:make", "there is no file nowhere/train.py"),
        ("a-b:make", "neither a .py file nor a module's name"),
        ("a..b:make", "neither a .py file nor a module's name"),
    ],
)
def test_what_cannot_be_a_callable_is_refused_at_once(spec, says):
    with pytest.raises(UsageError, match="--dataset") as caught:
        check(spec, "--dataset")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_may_be_one(written):
    check(written("") + ":make", "--dataset")
    check("package.module:make", "--dataset")


def test_a_file_is_imported_like_a_program_that_is_started(written, tmp_path):
    written("WORD = 'beside'", "beside_it.py")
    path = written("import sys, beside_it\ndef make():\n    return beside_it.WORD, sys.argv, __name__")
    assert call(f"{path}:make") == ("beside", [path], "mine")
    assert call(f"{path}:make")[2] == "mine"


def test_a_file_called_like_a_module_that_is_there_does_not_replace_it(written):
    path = written("def make():\n    return __name__", "queue.py")
    assert call(f"{path}:make") == "_gputune_user_queue"
    import queue

    assert hasattr(queue, "Queue")


def test_a_module_is_found_from_the_working_folder(written, tmp_path, monkeypatch):
    written("def make():\n    return 7", "in_the_folder.py")
    monkeypatch.chdir(tmp_path)
    assert call("in_the_folder:make") == 7


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("make = 7", "has no callable make"),
        ("", "has no callable make"),
        ("def make(:", "raised SyntaxError"),
        ("import no_such", "raised ModuleNotFoundError: No module named 'no_such' (mine.py:1, in <module>)"),
        ("def make():\n    raise ValueError('one\\ntwo')", "make() raised ValueError: one two (mine.py:2, in make)"),
        ("def make():\n    return open('/nowhere')", "No such file or directory: '/nowhere' (mine.py:2, in make)"),
        ("def make():\n    raise SystemExit(3)", "make() called sys.exit(3)"),
        ("def make():\n    raise KeyError", "make() raised KeyError (mine.py:2, in make)"),
    ],
)  # fmt: skip
def test_what_it_raises_is_told_in_one_line(written, text, says):
    with pytest.raises(UserCodeError) as caught:
        call(f"{written(text)}:make")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


FROM_A_WORKER = """Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/x/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
    data = fetcher.fetch(index)
  File "/home/me/train.py", line 12, in __getitem__
    raise ValueError("broken")
           ^^^^^
  File "/x/site-packages/PIL/Image.py", line 3, in open
    raise
ValueError: cannot read
it at all
"""


def test_what_a_worker_raised_is_told_with_the_users_own_place():
    said = _user_code.words(ValueError(FROM_A_WORKER))
    assert said == "ValueError: cannot read it at all (train.py:12, in __getitem__)"

"""What must not wait for torch does not import it, or anything else heavy."""

import json
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
import stand_in
from making import H200, environ, profile, python, written

pytestmark = pytest.mark.slow

HEAVY = {"torch", "numpy", "lightning", "transformers", "accelerate"}

RUN = """
import atexit, json, os, runpy, sys
def write():
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=open(os.environ["NAMES"], "w"))
atexit.register(write)
replace = os.execvpe
os.execvpe = lambda *arguments: (write(), replace(*arguments))
sys.argv[:1] = ["gputune"]
runpy.run_module("gputune", run_name="__main__")
"""

EACH_FIRST = """
import importlib, os, pkgutil, sys, traceback, gputune
for module in pkgutil.walk_packages(gputune.__path__, "gputune."):
    if not module.name.startswith(("gputune.live.shim.", "gputune.__main__")):
        child = os.fork()
        if not child:
            failed = 1
            try:
                importlib.import_module(module.name)
                failed = 0
            except BaseException:
                traceback.print_exc()
            os._exit(failed)
        print(module.name, os.waitpid(child, 0)[1])
"""


@cache
def imported(*arguments: str) -> set[str]:
    """The top-level packages that the command has imported when it ends, or becomes another. torch is a stand-in."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "names"
        python("-c", RUN, *arguments, env=environ(NAMES=str(names), PYTHONPATH=stand_in.torch(Path(folder))))
        return set(json.loads(names.read_text()))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("profile"), profile(fingerprint=H200))


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["apply", "--help"], ["apply", "no-such.yaml"], ["check"]]
)
def test_no_command_imports_what_is_heavy(arguments: list[str]) -> None:
    assert not imported(*arguments) & HEAVY


def test_help_waits_for_no_reader_of_profiles() -> None:
    assert not imported("--help") & {"yaml", "pynvml", "psutil"}


@pytest.mark.parametrize("more", [[], ["--", "true"], ["--", sys.executable, "-c", "pass"]])
def test_apply(path: str, more: list[str]) -> None:
    names = imported("apply", path, *more)
    assert "gputune" in names
    assert not names & HEAVY


def test_the_table_is_drawn_only_where_it_is_shown(path: str) -> None:
    assert "rich" in imported("apply", path)
    assert "rich" not in imported("apply", path, "--", "true")


def test_import_gputune() -> None:
    code = """
import sys, gputune; print(*sys.modules)
import gputune.profile, gputune.knobs, gputune.runtime.tuning; print(*sys.modules)
"""
    alone, all_ = ({name.split(".")[0] for name in line.split()} for line in python("-c", code).stdout.splitlines())
    assert "gputune" in alone
    assert not alone & {*HEAVY, "pynvml", "rich", "pydantic", "yaml", "psutil"}
    assert not all_ & HEAVY


@pytest.mark.exhaustive
def test_each_module_can_be_the_first_that_is_imported() -> None:
    """Which tests in forks of one process that has imported all would not see."""
    done = python("-c", EACH_FIRST)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) > 200
    assert [name for name, failed in rows if failed != "0"] == [], done.stderr

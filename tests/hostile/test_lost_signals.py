"""A signal whose handler happens to run where Python makes something else of its exception: within a destructor it is
printed and lost, and a `__set_name__`'s becomes the cause of another one before Python 3.12.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from making import environ

AT_AN_IMPORT = """
import os, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "gputune.report" and os.path.basename(sys.orig_argv[1]) == "gputune":
            class Met:
                def {method}: os.kill(os.getpid(), {number})
            class Holds: met = Met()
            del Holds.met
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["__del__(self)", "__set_name__(self, owner, name)"])
@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGTERM, ""), (signal.SIGHUP, ""), (signal.SIGINT, "gputune: interrupted; nothing was written\n")],
)
def test_ends_gputune_all_the_same(tmp_path: Path, number: signal.Signals, said: str, method: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(AT_AN_IMPORT.format(number=int(number), method=method))
    done = subprocess.run(
        [Path(sys.executable).with_name("gputune"), "status", "--python", sys.executable],
        env=environ(PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", said)

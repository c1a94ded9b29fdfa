"""What is tested is the installed package, also by the children that tests start: the working folder is not on their path.

Profiles that tests measure are cached in a folder of theirs, not in the user's.

Tests marked `gpu` run where there is one, and are skipped, and counted as skipped, elsewhere.
Signals mean what they mean in a terminal, also where the tests were started by `nohup` or in the background.
"""

import os
import signal
import tempfile
from pathlib import Path

import pytest

os.environ["PYTHONSAFEPATH"] = "1"
_cache = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _cache.name
for _variable in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):  # a container's; a user's program buffers its output
    os.environ.pop(_variable, None)

signal.signal(signal.SIGINT, signal.default_int_handler)
for _signal in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_signal, signal.SIG_DFL)


def pytest_collection_modifyitems(items):
    if Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here"))

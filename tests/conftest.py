"""How every test runs: what is tested is the installed package, in children too (the working folder is not on their
path); profiles are cached in a folder of the test run; signals mean what they mean in a terminal, also below `nohup`.

Tests run side by side, one process per CPU, unless a clock, a GPU or a limit of the machine is part of what they ask
about.
"""

import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

SIDE_BY_SIDE = ("not ", "slow")
"""How the `-m` expressions begin whose tests may share the machine."""
MOST_PROCESSES = 8
TOLD_SECONDS = 0.1
"""Less before or after a test is not told to the process that prints: telling it costs more than most tests."""

os.environ["PYTHONSAFEPATH"] = "1"
_cache = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _cache.name
for _variable in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):  # a container's; a user's program buffers its output
    os.environ.pop(_variable, None)
sys.dont_write_bytecode = False  # pytest's rewriting of all tests takes 4 s, which its cache saves the next run

settings.register_profile("side by side", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on any machine
settings.load_profile("side by side")

signal.signal(signal.SIGINT, signal.default_int_handler)
for _signal in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_signal, signal.SIG_DFL)


def pytest_collection(session):
    gc.disable()  # of what is collected nothing is garbage, and looking for it takes a fifth of the time


def pytest_collection_finish(session):
    gc.enable()
    gc.freeze()


def has_gpu():
    return Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists()


def pytest_xdist_auto_num_workers(config):
    """How many processes `-n auto` means; 0 runs the tests in this one, which is faster for a single file."""
    one_file = len(config.args) == 1 and ".py" in config.args[0]
    if one_file or has_gpu() or not config.option.markexpr.startswith(SIDE_BY_SIDE):
        return 0
    return min(MOST_PROCESSES, len(os.sched_getaffinity(0)))


def pytest_runtest_protocol(item, nextitem):
    """In a process that runs tests for another one, tell only how each test went, and what was slow or wrong around it:
    six messages for each test would be a fifth of the whole run.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed or report.duration > TOLD_SECONDS:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the markers
def pytest_collection_modifyitems(items):
    cases = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            function = item.nodeid.partition("[")[0]
            if cases[function] % sampled.args[0]:
                item.add_marker("exhaustive")
            cases[function] += 1
    if has_gpu():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here"))

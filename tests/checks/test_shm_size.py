from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import shm_size
from gputune.facts import Memory


def finding(size):
    [found] = shm_size.check(replace(facts_of(), memory=Memory(shm_bytes=size)), ())
    return found


@pytest.mark.parametrize("mebibytes", [0, 64, 1023])
def test_too_small(mebibytes):
    found = finding(mebibytes << 20)
    assert found.severity == "WARNING"
    assert f"{mebibytes} MiB" in found.message
    assert "--shm-size" in found.remedy


def test_large_enough():
    assert finding(1 << 30).severity == "OK"


def test_unread():
    assert finding(None).severity == "UNKNOWN"

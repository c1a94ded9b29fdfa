"""A fact that cannot be read is None and a Gap with the reason, whatever went wrong."""

from gputune.facts.gap import Gap, Gaps
from gputune.host import Unreadable


def failing(error):
    def reader():
        raise error

    return reader


def test_a_value_leaves_no_gap():
    gaps = Gaps()
    assert gaps.read("cpu.model", lambda: "EPYC") == "EPYC"
    assert gaps.found == []


def test_what_is_unreadable_is_a_gap_with_its_reason():
    gaps = Gaps()
    assert gaps.read("cpu.model", failing(Unreadable("/proc/cpuinfo: Permission denied"))) is None
    assert gaps.found == [Gap(fact="cpu.model", reason="/proc/cpuinfo: Permission denied")]


def test_a_reader_s_own_fault_is_a_gap_too():
    gaps = Gaps()
    assert gaps.read("cpu.model", failing(KeyError("model"))) is None
    assert gaps.found == [Gap(fact="cpu.model", reason="KeyError: 'model'")]

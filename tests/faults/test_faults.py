"""Every fault of the table is found, with its severity and its subject, and no healthy machine is blamed for anything.

What is expected was written from NVIDIA's, the kernel's, Slurm's, Kubernetes' and PyTorch's documents, which each entry
names. `python tests/faults/table.py` prints the table.
"""

import pytest
from faults.fault import judge, shown, standing
from faults.tables import AS_RECORDED, FAULTS, HEALTHY, KINDS, sample, together, with_both

PAIRS, MANY_PAIRS = 40, 2500


def test_the_table_is_as_large_as_it_must_be():
    assert len(FAULTS) >= 150
    assert len(HEALTHY) >= 60
    assert len(KINDS) >= 12
    assert len({str(fault) for fault in FAULTS}) == len(FAULTS)
    assert len({str(one) for one in HEALTHY}) == len(HEALTHY)
    assert all(fault.source and fault.expected for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_found_as_what_it_is(fault):
    verdict = judge((fault,), fault.machine().findings())
    assert verdict.holds, "\n".join(verdict.said)


@pytest.mark.parametrize("fault", AS_RECORDED, ids=str)
def test_and_so_it_is_on_a_machine_as_it_was_recorded(fault):
    verdict = judge((fault,), fault.machine().findings())
    assert verdict.holds, "\n".join(verdict.said)


@pytest.mark.parametrize("variant", HEALTHY, ids=str)
def test_a_healthy_machine_is_not_blamed(variant):
    findings = variant.machine().findings()
    assert not [shown(one) for one in standing(variant.kind, findings)]
    assert not [shown(one) for one in findings if "the check failed" in one.message]


@pytest.mark.parametrize("pair", sample(PAIRS), ids=lambda pair: " + ".join(map(str, pair)))
def test_of_two_faults_both_are_found(pair):
    verdict = judge(pair, with_both(*pair).findings())
    assert verdict.holds, "\n".join(verdict.said)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_of_any_two_faults_both_are_found():
    missed = []
    for pair in sample(MANY_PAIRS):
        verdict = judge(pair, with_both(*pair).findings())
        if not verdict.holds:
            missed += [f"{' + '.join(map(str, pair))}: {verdict.said}"]
    assert not missed, "\n".join([f"{len(missed)} pairs", *missed[:20]])


def test_a_pair_never_changes_the_same_thing_twice():
    assert not [pair for pair in sample(MANY_PAIRS) if not together(*pair)]

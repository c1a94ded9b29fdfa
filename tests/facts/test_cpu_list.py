"""Sets of CPUs as the kernel writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.facts import cpu_list

SETS = st.frozensets(st.integers(0, 300), max_size=40)


@pytest.mark.parametrize(
    ("cpus", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 2, 4], "0,2,4"), ([9, 8, 1, 0], "0-1,8-9")]
)
def test_the_shortest_list(cpus, text):
    assert cpu_list.text(cpus) == text


@pytest.mark.slow
@given(SETS)
def test_a_list_is_read_back(cpus):
    assert cpu_list.cpus(cpu_list.text(cpus)) == cpus


@pytest.mark.slow
@given(SETS)
def test_a_mask_holds_the_same_cpus(cpus):
    words = [sum(1 << cpu % 64 for cpu in cpus if cpu // 64 == word) for word in range(5)]
    assert cpu_list.from_mask(words) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1-2-3"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        cpu_list.cpus(text)

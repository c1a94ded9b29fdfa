"""Which GPUs a value of CUDA_VISIBLE_DEVICES leaves, as CUDA reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.facts.visible_gpus import visible

UUIDS = ["GPU-aa11", "GPU-aa22", "GPU-bb33"]
ENTRY = st.sampled_from(["0", "1", "2", "3", "00", "-1", "", " 1 ", "²", "٢", "GPU-", "GPU-a", "GPU-b", *UUIDS])


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        # A list is taken up to the first entry that names none.
        ("2", [2]), ("2,0", [2, 0]), (" 1 , 2", [1, 2]), ("1,", [1]), ("0,9,1", [0]), ("0,-1,1", [0]), ("0,x,1", [0]),
        ("", []), ("-1", []), ("none", []), (",1", []), ("1,1", []), ("MIG-GPU-aa11/1/0", []),
        ("٣", []),  # a digit, but not one that CUDA reads
        # The beginning of a UUID names a GPU if it is the only one.
        ("GPU-aa2", [1]), ("GPU-AA2", [1]), ("gpu-aa2", []), ("GPU-b,GPU-aa11", [2, 0]), ("GPU-b,", [2]),
        ("GPU-aa", []), ("GPU-", []), ("GPU-bb33x", []),
        # A number is read by its leading digits.
        ("1x", [1]), ("+2", [2]), ("-0", [0]), ("-2", []), ("00,0x1", []), ("01", [1]), ("9" * 5000, []), ("x1", []),
        ("+", []),
    ],
)  # fmt: skip
def test_what_cuda_takes_of_a_list(value, taken):
    assert visible(value, UUIDS)[0] == taken


def test_a_gpu_whose_uuid_could_not_be_read_can_be_named_by_number_only():
    assert visible("1", [None, None]) == ([1], None)
    assert visible("GPU-a", [None, "GPU-aa22"]) == ([1], None)


@pytest.mark.parametrize(
    ("value", "uuids", "taken", "refused"),
    [
        ("1,GPU-aa11", UUIDS, [1], "GPU-aa11"), ("GPU-aa11,1", UUIDS, [0], "1"), ("0,,", UUIDS, [0], "an empty entry"),
        *[(entry, UUIDS[:1], [], entry) for entry in ("GPU-", "G", "GPU-b", "MIG-aa11", "aa11")],
        *[(f"GPU-aa11,{entry},0", UUIDS[:1], [0], entry or "an empty entry") for entry in ("", "G", "GPU-")],
    ],
)  # fmt: skip
def test_the_first_entry_that_names_no_gpu_is_told(value, uuids, taken, refused):
    assert visible(value, uuids) == (taken, f"{refused} names no GPU here")


@pytest.mark.slow
@given(
    value=st.text(max_size=30) | st.lists(ENTRY | st.text(max_size=12), max_size=6).map(",".join),
    count=st.integers(0, 3),
)
def test_any_text_names_distinct_gpus_that_are_there(value, count):
    taken, refused = visible(value, UUIDS[:count])
    assert len(set(taken)) == len(taken)
    assert set(taken) <= set(range(count))
    entries = value.split(",")
    assert refused or len(taken) == len(entries) - (not entries[-1].strip())

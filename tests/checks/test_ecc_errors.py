import pytest
from recorded import NOT_SUPPORTED, RecordedHost, found

from gputune.checks import ecc_errors
from gputune.host import Unreadable

SINCE_LOAD, EVER = "TotalEccErrors:1,0", "TotalEccErrors:1,1"


def finding(gpu, **overrides):
    [one] = found(ecc_errors, gpu=gpu, **overrides)
    return one


@pytest.mark.parametrize(
    ("count", "ever", "told"), [(1, 1, "1 uncorrectable memory error "), (2, 7, "2 uncorrectable memory errors ")]
)
def test_an_error_since_the_driver_was_loaded(count, ever, told):
    one = finding({SINCE_LOAD: count, EVER: ever})
    assert (one.severity, one.subject) == ("ERROR", "GPU 0")
    assert one.message.startswith(told)
    assert f"{ever} in the card's life" in one.message


@pytest.mark.parametrize(
    ("unread", "name"), [(["PciInfo"], "GPU-f5f3a5e9-939a-980a-1428-1d671bf50b09"), (["PciInfo", "UUID"], "0")]
)
def test_a_gpu_without_an_address_is_reset_by_what_else_names_it(unread, name):
    one = found(ecc_errors, gpu={SINCE_LOAD: 1} | {call: {"unreadable": "NVML: Unknown Error"} for call in unread})[0]
    assert f"sudo nvidia-smi -i {name} --gpu-reset" in one.remedy


def test_errors_before_the_driver_was_loaded_are_told_and_no_fault():
    one = finding({EVER: 4})
    assert one.severity == "OK"
    assert "4 in the card's life" in one.message


@pytest.mark.parametrize("errors", [{}, {SINCE_LOAD: 1}, {SINCE_LOAD: {"unreadable": NOT_SUPPORTED}}])
def test_where_ecc_is_off_nothing_counts(errors):
    one = finding({"EccMode": [0, 1], **errors})
    assert one.severity == "NOT_APPLICABLE"
    assert "ECC is off" in one.message


def test_a_gpu_that_only_torch_knows():
    [one] = found(ecc_errors, nvml=Unreadable("NVML: Driver Not Loaded"))
    assert one.severity == "UNKNOWN"
    assert "NVML: Driver Not Loaded" in one.message


def test_a_mig_slice_is_left_to_its_gpu():
    [device] = RecordedHost().torch["devices"]
    mig = {**device, "name": "NVIDIA H200 MIG 1g.18gb", "uuid": "another"}
    one, other = found(ecc_errors, torch={"devices": [mig]})
    assert (one.severity, one.subject) == ("OK", "GPU 0")
    assert (other.severity, other.subject) == ("NOT_APPLICABLE", "GPU 1")
    assert "MIG slice" in other.message


def test_an_error_that_was_read_counts_though_the_card_s_life_was_not():
    [one] = found(
        ecc_errors, gpu={"TotalEccErrors:1,0": 5, "TotalEccErrors:1,1": {"unreadable": "NVML: Unknown Error"}}
    )
    assert one.severity == "ERROR"
    assert one.message == "5 uncorrectable memory errors since the driver was loaded"

import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import row_remapping

UNSUPPORTED = {"unreadable": NOT_SUPPORTED}


def finding(rows, **more):
    [one] = found(row_remapping, gpu={"RemappedRows": rows, **more})
    return one


@pytest.mark.parametrize("rows", [[0, 0, 0, 0], [3, 1, 0, 0]])
def test_rows_that_were_replaced_are_no_fault(rows):
    assert finding(rows).severity == "OK"


def test_a_row_that_waits_is_a_warning():
    findings = found(row_remapping, "nvidia-h200-x8", gpu={"RemappedRows": [0, 1, 1, 0]}, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "WARNING"] == ["GPU 3"]
    assert "waiting" in findings[3].message
    assert "; sudo nvidia-smi -i 00000000:00:09.0 --gpu-reset; " in findings[3].remedy


@pytest.mark.parametrize("waits", [0, 1])
def test_a_row_that_could_not_be_replaced_is_an_error_whatever_else_waits(waits):
    one = finding([0, 9, waits, 1])
    assert (one.severity, one.subject) == ("ERROR", "GPU 0")
    assert "could not be replaced" in one.message
    assert "out of service" in one.remedy


@pytest.mark.parametrize("answer", [{"unreadable": "NVML: Unknown Error"}, [0, 0, 0], [0, 0, 2, 0]])
def test_what_is_not_read_is_unknown(answer):
    one = finding(answer)
    assert one.severity == "UNKNOWN"
    assert "NVML" in one.message


@pytest.mark.parametrize("architecture", range(2, 7))
def test_gpus_before_ampere_retire_pages_instead(architecture):
    one = finding(UNSUPPORTED, Architecture=architecture)
    assert one.severity == "NOT_APPLICABLE"
    assert "retires pages" in one.message


@pytest.mark.parametrize(("modes", "severity"), [([1, 1], "NOT_APPLICABLE"), ([0, 1], "UNKNOWN")])
def test_a_gpu_divided_by_mig_does_not_tell(modes, severity):
    one = finding(UNSUPPORTED, MigMode=modes)
    assert one.severity == severity
    assert ("MIG" in one.message) == (severity == "NOT_APPLICABLE")


def test_a_gpu_divided_by_mig_that_tells_is_judged():
    assert finding([0, 0, 1, 0], MigMode=[1, 1]).severity == "WARNING"


@pytest.mark.parametrize("architecture", [7, 9, {"unreadable": "NVML: Unknown Error"}])
def test_a_data_centre_gpu_that_tells_none_is_unknown(architecture):
    assert finding(UNSUPPORTED, Architecture=architecture).severity == "UNKNOWN"

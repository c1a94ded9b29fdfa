import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import persistence_mode


def finding(mode, **gpu):
    [one] = found(persistence_mode, gpu={"PersistenceMode": mode, **gpu})
    return one


def test_on():
    one = finding(1)
    assert (one.severity, one.subject) == ("OK", "GPU 0")


def test_off_is_a_warning_that_the_host_can_mend():
    findings = found(persistence_mode, "nvidia-h200-x8", gpu={"PersistenceMode": 0}, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "WARNING"] == ["GPU 3"]
    assert "persistence mode is off" in findings[3].message
    assert findings[3].remedy.startswith("on the host: sudo nvidia-smi -i 00000000:00:09.0 -pm 1; permanently: ")
    assert "nvidia-persistenced" in findings[3].remedy


@pytest.mark.parametrize("answer", [{"unreadable": "NVML: Unknown Error"}, {"unreadable": NOT_SUPPORTED}, 2])
def test_what_is_not_read_is_unknown(answer):
    one = finding(answer)
    assert one.severity == "UNKNOWN"
    assert "NVML" in one.message


def test_a_share_of_a_gpu_leaves_it_to_its_host():
    one = finding({"unreadable": NOT_SUPPORTED}, VirtualizationMode=2)
    assert one.severity == "NOT_APPLICABLE"
    assert "vGPU" in one.message


def test_a_consumer_gpu_does_without():
    [one] = found(persistence_mode, gpu={"PersistenceMode": 0, "Brand": 5})
    assert one.severity == "NOT_APPLICABLE"

import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import page_retirement

VOLTA, UNSUPPORTED = 5, {"unreadable": NOT_SUPPORTED}


def finding(pending, architecture=VOLTA, **more):
    gpu = {"RetiredPagesPendingStatus": pending, "Architecture": architecture, **more}
    [one] = found(page_retirement, gpu=gpu)
    return one


def test_pages_that_wait_are_a_warning():
    findings = found(page_retirement, "nvidia-h200-x8", gpu={"RetiredPagesPendingStatus": 1}, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "WARNING"] == ["GPU 3"]
    assert "waiting to be retired" in findings[3].message
    assert "; sudo nvidia-smi -i 00000000:00:09.0 --gpu-reset; " in findings[3].remedy


def test_no_page_waits():
    one = finding(0)
    assert (one.severity, one.subject) == ("OK", "GPU 0")


@pytest.mark.parametrize("architecture", [2, 6, 9])
@pytest.mark.parametrize("answer", [{"unreadable": "NVML: Unknown Error"}, 2])
def test_what_is_not_read_is_unknown(answer, architecture):
    one = finding(answer, architecture)
    assert one.severity == "UNKNOWN"
    assert "NVML" in one.message


@pytest.mark.parametrize(
    ("architecture", "name"), [(7, "Ampere"), (8, "Ada"), (9, "Hopper"), (10, "Blackwell"), (13, "Rubin")]
)
def test_newer_gpus_remap_rows_instead(architecture, name):
    one = finding(UNSUPPORTED, architecture)
    assert one.severity == "NOT_APPLICABLE"
    assert one.message == f"{name} remaps rows instead"


@pytest.mark.parametrize("lack", [{"Brand": 5}, {"Brand": 6}, {"VirtualizationMode": 2}])
def test_older_consumer_gpus_and_shares_of_one_have_none(lack):
    assert finding(UNSUPPORTED, **lack).severity == "NOT_APPLICABLE"


@pytest.mark.parametrize("architecture", [VOLTA, {"unreadable": "NVML: Unknown Error"}])
def test_an_older_data_centre_gpu_that_tells_none_is_unknown(architecture):
    assert finding(UNSUPPORTED, architecture).severity == "UNKNOWN"

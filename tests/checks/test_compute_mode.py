import pytest
from recorded import RecordedHost, found

from gputune.checks import compute_mode

REMEDY = (
    "sudo nvidia-smi -i 00000000:00:06.0 -c DEFAULT  # on the host, as root; changes the node; "
    "an exclusive mode may be deliberate, as for MPS"
)


def finding(mode, environ=None, **gpu):
    [one] = found(compute_mode, gpu={"ComputeMode": mode, **gpu}, environ=environ)
    return one


@pytest.mark.parametrize(
    ("number", "mode", "severity"),
    [
        (0, "default", "OK"),
        (1, "exclusive thread", "WARNING"),
        (2, "prohibited", "ERROR"),
        (3, "exclusive process", "WARNING"),
    ],
)
def test_what_each_mode_forbids(number, mode, severity):
    one = finding(number)
    assert (one.severity, one.subject) == (severity, "GPU 0")
    assert one.message.startswith(f"its compute mode is {mode}")
    assert one.remedy == (None if severity == "OK" else REMEDY)


@pytest.mark.parametrize("variable", ["CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
@pytest.mark.parametrize(("number", "severity"), [(0, "OK"), (1, "WARNING"), (2, "ERROR"), (3, "OK")])
def test_mps_wants_an_exclusive_process(number, severity, variable):
    one = finding(number, {variable: "50"})
    assert one.severity == severity
    assert ("as MPS requires" in one.message) == (number == 3)


def test_a_gpu_that_torch_does_not_see_is_another_s():
    devices = RecordedHost("nvidia-h200-x8").torch["devices"][:1]
    findings = found(compute_mode, "nvidia-h200-x8", gpu={"ComputeMode": 2}, gpu_index=5, torch={"devices": devices})
    assert [one.severity for one in findings] == ["OK"] + ["NOT_APPLICABLE"] * 7

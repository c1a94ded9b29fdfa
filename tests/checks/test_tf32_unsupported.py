import pytest
from recorded import RecordedHost, found

from gputune.checks import tf32_unsupported
from gputune.host import Unreadable

NVIDIA, TORCH = "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
T4 = {"Name": "Tesla T4", "CudaComputeCapability": [7, 5]}


def finding(gpu=T4, matmul=False, version="2.11.0", **environ):
    torch = {"torch": version, "flags": {**RecordedHost().torch["flags"], "matmul_tf32": matmul}}
    [only] = found(tf32_unsupported, gpu=gpu, torch=torch, environ=environ)
    return only


@pytest.mark.parametrize(
    ("capability", "severity"), [([7, 0], "WARNING"), ([7, 5], "WARNING"), ([8, 0], "OK"), ([9, 0], "OK")]
)
def test_tf32_came_with_8_0(capability, severity):
    one = finding({"CudaComputeCapability": capability}, matmul=True, **{NVIDIA: "1"})
    assert (one.severity, one.subject) == (severity, "GPU 0")


@pytest.mark.parametrize(
    ("environ", "named"),
    [({NVIDIA: "1"}, [NVIDIA]), ({TORCH: "1"}, [TORCH]), ({NVIDIA: "1", TORCH: "1"}, [NVIDIA, TORCH])],
)
@pytest.mark.parametrize("matmul", [True, False])
def test_a_variable_that_asks_for_it(environ, named, matmul):
    one = finding(matmul=matmul, **environ)
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"Tesla T4 (7.5) has no TF32, which {' and '.join(named)} would turn on"
    assert one.remedy == f"unset {' '.join(named)}"


def test_a_flag_that_asks_for_it():
    one = finding(matmul=True)
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == "Tesla T4 (7.5) has no TF32, which torch's matmul flag requests"
    assert one.remedy == 'torch.set_float32_matmul_precision("highest")'


@pytest.mark.parametrize(
    ("version", "severity"), [("1.11.0", "NOT_APPLICABLE"), ("1.12.0", "WARNING"), ("custom", "WARNING")]
)
def test_a_flag_that_torch_has_on_by_default_asks_for_nothing(version, severity):
    assert finding(matmul=True, version=version).severity == severity


@pytest.mark.parametrize("environ", [{}, {NVIDIA: "0"}, {TORCH: "0"}, {NVIDIA: ""}])
def test_nobody_asks_for_it(environ):
    one = finding(**environ)
    assert (one.severity, one.subject) == ("NOT_APPLICABLE", "GPU 0")
    assert one.message == "Tesla T4 (7.5) has no TF32, and nothing requests it"


def test_each_gpu_is_asked_for_itself():
    findings = found(tf32_unsupported, "nvidia-h200-x8", gpu=T4, gpu_index=3, environ={NVIDIA: "1"})
    assert [one.severity for one in findings] == ["OK"] * 3 + ["WARNING"] + ["OK"] * 4
    assert findings[3].subject == "GPU 3"


@pytest.mark.parametrize(
    "torch", [Unreadable("no answer"), {"flags": None, "gaps": {"flags": "AttributeError: no answer"}}]
)
def test_flags_that_cannot_be_read_are_unknown(torch):
    [one] = found(tf32_unsupported, gpu=T4, torch=torch)
    assert (one.severity, one.subject) == ("UNKNOWN", "GPU 0")
    assert "no answer" in one.message


def test_gpus_that_nobody_describes_are_unknown():
    [one] = found(tf32_unsupported, nvml=Unreadable("no NVML"), torch=Unreadable("no answer"), environ={NVIDIA: "1"})
    assert one.severity == "UNKNOWN"


def test_no_gpu():
    assert [one.severity for one in found(tf32_unsupported, "cpu-only", environ={NVIDIA: "1"})] == ["NOT_APPLICABLE"]

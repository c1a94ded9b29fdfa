import pytest
from recorded import found

from gputune.checks import determinism

VARIABLE = "CUBLAS_WORKSPACE_CONFIG"


def finding(workspace=None, algorithms=False, cudnn=False, benchmark=False, **torch):
    flags = {"deterministic_algorithms": algorithms, "cudnn_deterministic": cudnn, "cudnn_benchmark": benchmark}
    [only] = found(determinism, torch={"flags": flags, **torch}, environ={VARIABLE: workspace})
    return only


@pytest.mark.parametrize("timing", [False, True])
def test_not_asked_for(timing):
    assert finding(benchmark=timing).severity == "OK"


@pytest.mark.parametrize(("algorithms", "cudnn"), [(True, False), (False, True), (True, True)])
def test_choosing_algorithms_by_timing_contradicts_it(algorithms, cudnn):
    warned = finding(":4096:8", algorithms, cudnn, benchmark=True)
    assert warned.severity == "WARNING"
    assert "cudnn.benchmark" in warned.message
    assert warned.remedy == "torch.backends.cudnn.benchmark = False"


@pytest.mark.parametrize(("workspace", "told"), [(None, "not set"), ("", "not set"), (":4096:2", ":4096:2")])
def test_deterministic_algorithms_need_cublas_s_variable(workspace, told):
    warned = finding(workspace, algorithms=True)
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert f"{VARIABLE} is {told}: cuBLAS fails or warns" in warned.message
    assert warned.remedy == f"export {VARIABLE}=:4096:8"


@pytest.mark.parametrize("workspace", [":4096:8", ":16:8"])
def test_deterministic_algorithms_in_every_program_cost_speed(workspace):
    warned = finding(workspace, algorithms=True)
    assert (warned.severity, warned.subject) == ("WARNING", None)
    assert "costs speed" in warned.message
    assert "torch.use_deterministic_algorithms(False)" in warned.remedy


def test_a_torch_without_cuda_needs_no_variable():
    warned = finding(algorithms=True, cuda=None)
    assert (warned.severity, warned.subject) == ("WARNING", None)
    assert "costs speed" in warned.message


def test_deterministic_cudnn_needs_no_variable_and_costs_speed():
    warned = finding(cudnn=True)
    assert warned.severity == "WARNING"
    assert "costs speed" in warned.message


@pytest.mark.parametrize(
    ("workspace", "kib"), [(":16:8", 128), (":4096:1", 4096), (":4095:2", 8190), (":0:0", 0), (":16:8:4096:1", 4224)]
)
def test_a_small_workspace_limits_cublas(workspace, kib):
    warned = finding(workspace)
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert f"{VARIABLE}={workspace} gives cuBLAS {kib} KiB of workspace; torch's default is 32768 KiB" in warned.message
    assert warned.remedy.startswith(f"export {VARIABLE}=:4096:8  # or unset it")


@pytest.mark.parametrize(
    ("workspace", "capability", "severity"),
    [
        (":4096:2:16:8", [8, 0], "OK"),
        (":4096:2", [8, 0], "WARNING"),
        (":4096:2:16:8", [9, 0], "WARNING"),
        (":4096:8", [9, 0], "OK"),
        (":4096:8", [12, 0], "OK"),
    ],
)
def test_what_torch_would_give_depends_on_the_gpu(workspace, capability, severity):
    [only] = found(determinism, environ={VARIABLE: workspace}, gpu={"CudaComputeCapability": capability})
    assert only.severity == severity
    assert f"{VARIABLE}={workspace}" in only.message


@pytest.mark.parametrize("workspace", ["", "large", ":4096", ":4096:8:"])
def test_what_torch_cannot_read_it_ignores(workspace):
    assert finding(workspace).severity == "OK"


def test_a_flag_that_was_not_read_is_unknown():
    assert finding(algorithms=None).severity == "UNKNOWN"


def test_without_cuda_the_variable_is_nobody_s():
    assert finding(":16:8", cuda=None).severity == "OK"

from dataclasses import replace

import pytest
from recorded import RecordedHost, facts_of

from gputune import checks
from gputune.checks import gpu_absent
from gputune.host import Unreadable


def finding(machine="nvidia-h200-x1", **overrides):
    [found] = gpu_absent.check(facts_of(machine, **overrides), ())
    return found


@pytest.mark.parametrize(
    ("asked", "sign"),
    [
        ({"environ": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "NVIDIA_VISIBLE_DEVICES=all"),
        ({"environ": {"NVIDIA_VISIBLE_DEVICES": "0"}}, "NVIDIA_VISIBLE_DEVICES=0"),
        ({"files": {"/dev/nvidia0": ""}}, "/dev/nvidia0"),
        ({"environ": {"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "0"}}, "slurm granted GPU 0"),
    ],
)
def test_asked_for_and_absent(asked, sign):
    found = finding("cpu-only", **asked)
    assert found.severity == "ERROR"
    assert sign in found.message
    assert "--gpus" in found.remedy


@pytest.mark.parametrize("laptop", [{}, {"files": {"/dev/dxg": ""}}, {"environ": {"NVIDIA_VISIBLE_DEVICES": "void"}}])
def test_required_and_absent(laptop):
    [found] = gpu_absent.check(replace(facts_of("cpu-only", **laptop), gpu_required=True), ())
    assert found.severity == "ERROR"
    assert "(--require-gpu)" in found.message


def test_required_and_here():
    [found] = gpu_absent.check(replace(facts_of(), gpu_required=True), ())
    assert found.severity == "OK"


@pytest.mark.parametrize("value", ["", "none", "void"])
def test_not_asked_for(value):
    found = finding("cpu-only", environ={"NVIDIA_VISIBLE_DEVICES": value})
    assert found.severity == "NOT_APPLICABLE"
    assert "no GPU was requested" in found.message


@pytest.mark.parametrize("value", ["", "-1", "99", "0,0"])
@pytest.mark.parametrize("torch", [{"devices": []}, {"devices": None, "gaps": {"devices": "no answer"}}])
def test_hidden_by_the_environment(value, torch):
    facts = facts_of(environ={"CUDA_VISIBLE_DEVICES": value}, torch=torch)
    [found] = gpu_absent.check(facts, ())
    assert found.severity == "NOT_APPLICABLE"
    assert found.message == f"NVML lists 1 GPU; CUDA_VISIBLE_DEVICES={value!r} hides them from torch"
    [required] = gpu_absent.check(replace(facts, gpu_required=True), ())
    assert (required.severity, required.message) == ("ERROR", found.message)
    assert required.remedy == "unset CUDA_VISIBLE_DEVICES"


def test_hidden_and_not_listed_either():
    found = finding("cpu-only", files={"/dev/nvidia0": ""}, environ={"CUDA_VISIBLE_DEVICES": ""})
    assert found.severity == "ERROR"
    assert found.message == "a GPU was requested (/dev/nvidia0), but CUDA_VISIBLE_DEVICES hides it"
    assert found.remedy == "unset CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize("value", ["0", "0,99"])
def test_a_variable_that_leaves_one_to_see_explains_nothing(value):
    assert finding(environ={"CUDA_VISIBLE_DEVICES": value}, torch={"devices": []}).severity == "ERROR"


def test_nothing_is_hidden_where_nothing_is():
    assert finding("cpu-only", environ={"CUDA_VISIBLE_DEVICES": ""}).severity == "NOT_APPLICABLE"


def test_listed_by_nvml_but_not_seen_by_torch():
    found = finding(torch={"devices": []})
    assert found.severity == "ERROR"
    assert "NVML lists 1 GPU, but torch can use none" in found.message
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in found.remedy


def test_listed_by_nvml_but_torch_fails():
    failure = "RuntimeError: CUDA unknown error"
    found = finding("nvidia-h200-x8", torch={"devices": None, "gaps": {"devices": failure}})
    assert found.severity == "ERROR"
    assert f"NVML lists 8 GPUs, but torch can use none ({failure})" in found.message


def test_where_torch_waits_for_the_fabric_another_check_says_so():
    failure = "RuntimeError: Error 802: system not yet initialized"
    found = finding("nvidia-h200-x8", torch={"devices": None, "gaps": {"devices": failure}})
    assert found.severity == "NOT_APPLICABLE"
    assert "Fabric Manager" in found.message


@pytest.mark.parametrize("torch", [Unreadable("no answer"), {"cuda": None, "devices": None}])
def test_listed_by_nvml_where_there_is_no_torch_that_could_use_it(torch):
    found = finding(torch=torch)
    assert (found.severity, found.message) == ("OK", "NVML lists 1 GPU")


def test_wsl_s_device_may_be_any_maker_s():
    found = finding("cpu-only", files={"/dev/dxg": ""})
    assert found.severity == "UNKNOWN"
    assert "/dev/dxg" in found.message


def test_some_hidden_on_purpose():
    devices = RecordedHost("nvidia-h200-x8").torch["devices"][3:4]
    found = finding("nvidia-h200-x8", environ={"CUDA_VISIBLE_DEVICES": "3"}, torch={"devices": devices})
    assert (found.severity, found.message) == ("OK", "torch sees 1 GPU")


def test_a_torch_for_amd_s_gpus_is_another_s_matter():
    found = finding("cpu-only", torch={"hip": "6.4"}, environ={"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1"})
    assert found.severity == "NOT_APPLICABLE"
    assert "AMD" in found.message


def test_a_driver_that_is_too_old_is_told_by_the_check_that_asks_for_it():
    found = finding(torch={"devices": [], "cuda": "14.0"})
    assert found.severity == "NOT_APPLICABLE"
    assert "driver supports CUDA 13.0, torch needs 14.0" in found.message


@pytest.mark.parametrize(("files", "docker"), [({}, True), ({"/.dockerenv": None}, False)])
def test_a_container_s_remedy_is_for_containers(files, docker):
    assert finding(torch={"devices": []}, files=files).remedy.startswith("docker run") is docker


def failing(words, **overrides):
    return finding(torch={"devices": None, "gaps": {"devices": f"RuntimeError: {words}"}}, **overrides)


STUB = "Error 34: CUDA driver is a stub library"
COMPAT = "Error 804: forward compatibility was attempted on non supported HW"
COMBINATION = "Error 803: system has unsupported display driver / cuda driver combination"
UNKNOWN = "CUDA unknown error - this may be due to an incorrectly set up environment"
PATH = "LD_LIBRARY_PATH"


@pytest.mark.parametrize(
    ("words", "path", "remedy"),
    [
        (STUB, "/usr/local/cuda/lib64/stubs:/opt/lib", f"export {PATH}=/opt/lib"),
        (STUB, "/usr/local/cuda/lib64/stubs", f"unset {PATH}"),
        (STUB, None, "ldconfig -p | grep libcuda.so.1"),
        (COMPAT, "/usr/local/cuda/compat:/opt/lib", f"export {PATH}=/opt/lib"),
        (COMPAT, None, "sudo apt-get remove 'cuda-compat-*' && sudo ldconfig"),
        (COMBINATION, None, "docker restart CONTAINER"),
        (UNKNOWN, None, "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
        ("Error 100: no CUDA-capable device is detected", None, "docker run --gpus device=0 -e NVIDIA_DRIVER_CAP"),
        ("libcuda.so.1: cannot open shared object file", None, "docker run --gpus device=0 -e NVIDIA_DRIVER_CAP"),
        ("something new", None, "/opt/torch/.venv/bin/python3 -c 'import torch; torch.cuda.init()'"),
    ],
)
def test_what_to_type_depends_on_torch_s_reason(words, path, remedy):
    one = failing(words, environ={PATH: path})
    assert one.severity == "ERROR"
    assert words in one.message
    assert one.remedy.startswith(remedy)


def test_another_version_of_the_module_is_told_by_the_check_that_compares_them():
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.1  Mon\n"
    one = failing(COMBINATION, files={"/proc/driver/nvidia/version": version})
    assert (one.severity, "see driver_mismatch" in one.message) == ("NOT_APPLICABLE", True)


@pytest.mark.parametrize(
    ("value", "option"),
    [("all", "--gpus all "), ("2", "--gpus device=2 "), ("0,1", "--gpus '\"device=0,1\"' "), (None, "--gpus 1 ")],
)
def test_docker_is_told_to_give_what_was_given(value, option):
    assert option in finding(torch={"devices": []}, environ={"NVIDIA_VISIBLE_DEVICES": value}).remedy


@pytest.mark.parametrize(
    ("count", "environ", "remedy"),
    [
        ("8", {}, "srun --gpus=8 COMMAND"),
        ("1", {}, "srun --gpus=1 COMMAND"),
        (None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "resources: {limits: {nvidia.com/gpu: 4}}"),
    ],
)
def test_a_job_or_pod_asks_for_as_many_as_it_was_granted(count, environ, remedy):
    job = {"SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": count} if count else {}
    facts = facts_of("cpu-only", environ={**job, **environ})
    [one] = gpu_absent.check(replace(facts, gpus_expected=None if count else 4), ())
    assert one.severity == "ERROR"
    assert one.remedy.startswith(remedy)
    assert (f"granted {count} GPU" in one.message) == bool(count)


def test_expecting_a_number_asks_for_a_gpu():
    [none] = gpu_absent.check(replace(facts_of("cpu-only"), gpus_expected=8), ())
    assert (none.severity, "(--expect-gpus 8)" in none.message) == ("ERROR", True)
    [zero] = gpu_absent.check(replace(facts_of("cpu-only"), gpus_expected=0), ())
    assert zero.severity == "NOT_APPLICABLE"


FILES = {f"/dev/nvidia{index}": "" for index in range(2)}
REVOKED = {"files": {**FILES, "/.dockerenv": ""}, "denied": [*FILES]}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "NVIDIA_VISIBLE_DEVICES": "void"}
FAILED = Unreadable("NVML: Unknown Error", "unknown_error")


@pytest.mark.parametrize("nvml", [FAILED, {"devices": []}])
@pytest.mark.parametrize(
    ("environ", "remedy"),
    [
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, "docker restart CONTAINER  # on the host"),
        ({}, "docker restart CONTAINER  # on the host"),
        (POD, 'kubectl delete pod "$HOSTNAME"'),
    ],
)
def test_a_container_whose_gpus_were_taken_away(nvml, environ, remedy):
    one = finding("cpu-only", **REVOKED, nvml=nvml, environ=environ)
    assert (one.severity, one.subject) == ("ERROR", "/dev/nvidia0")
    assert "may open none of the GPUs' device files (/dev/nvidia0 to /dev/nvidia1)" in one.message
    assert ("Unknown Error" in one.message) == (nvml is FAILED)
    assert remedy in one.remedy
    assert "create-dev-char-symlinks" in one.remedy


@pytest.mark.parametrize("environ", [{}, {"SLURM_GPUS_ON_NODE": "0", "NVIDIA_VISIBLE_DEVICES": "all"}])
@pytest.mark.parametrize("kind", [{}, {"/.dockerenv": ""}])
def test_a_job_that_was_granted_none_may_open_none(environ, kind):
    job = {"SLURM_JOB_ID": "7", **environ}
    one = finding("cpu-only", files={**FILES, **kind}, denied=[*FILES], nvml={"devices": []}, environ=job)
    assert one.severity == "NOT_APPLICABLE"


def test_a_job_that_was_granted_some_may_open_none():
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1"}
    one = finding("cpu-only", files=FILES, denied=[*FILES], nvml={"devices": []}, environ=job)
    assert one.severity == "ERROR"
    assert "slurm granted 2 GPUs (0,1)" in one.message


@pytest.mark.parametrize(
    ("cause", "other"),
    [("no_answer", "nvml_missing"), ("killed", "nvml_missing"), ("version_mismatch", "driver_mismatch")],
)
def test_an_nvml_that_fails_is_told_by_another_check(cause, other):
    one = finding("cpu-only", files=FILES, nvml=Unreadable("NVML: nvmlInit", cause))
    assert (one.severity, f"see {other}" in one.message) == ("NOT_APPLICABLE", True)


ORIN = {"/proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0"}
XAVIER = {"/proc/device-tree/model": "NVIDIA Jetson Xavier NX Developer Kit\0"}
DESKTOP = {"cuda": "12.6", "devices": [], "arch_list": ["sm_80", "sm_90", "compute_90"]}


@pytest.mark.parametrize(
    ("files", "torch", "told"),
    [
        (ORIN, {"cuda": None, "devices": None}, "built without CUDA"),
        (ORIN, DESKTOP, "needs sm_87"),
        (XAVIER, DESKTOP, "needs sm_72"),
        (XAVIER, {**DESKTOP, "arch_list": ["sm_87"]}, "needs sm_72"),
        ({"/dev/nvmap": ""}, DESKTOP, "sm_72 or sm_87"),
    ],
)
def test_a_jetson_board_with_another_machine_s_torch(files, torch, told):
    one = finding("cpu-only", files=files, torch=torch)
    assert one.severity == "ERROR"
    assert told in one.message
    assert "the wheel that NVIDIA builds for its JetPack" in one.remedy


def test_a_jetson_board_whose_torch_fits_and_sees_none():
    one = finding("cpu-only", files=ORIN, torch={**DESKTOP, "arch_list": ["sm_87"]})
    assert (one.severity, "cannot use the GPU of NVIDIA Jetson AGX Orin" in one.message) == ("ERROR", True)


INTEGRATED = {
    "name": "Orin",
    "uuid": None,
    "major": 8,
    "minor": 7,
    "total_memory": 65 << 30,
    "multi_processor_count": 16,
}
HEALTHY = {"cuda": "12.6", "arch_list": ["sm_87"], "devices": [INTEGRATED]}


NO_PCI = {name: None for name in RecordedHost().files if name.startswith("/sys/bus/pci/devices")}
PARTIAL = {"Name": "Orin (nvgpu)", "UUID": "GPU-5a5a5a5a", "CudaComputeCapability": [8, 7]}


@pytest.mark.parametrize(
    "nvml",
    [
        Unreadable("NVML: NVML Shared Library Not Found", "library_not_found"),
        {"DriverVersion": "540.4.0", "CudaDriverVersion_v2": 12060, "devices": [PARTIAL]},
    ],
    ids=["without NVML", "with part of NVML"],
)
def test_a_jetson_board_that_works_is_no_complaint(nvml):
    environ = {"NVIDIA_VISIBLE_DEVICES": None, "NVIDIA_DRIVER_CAPABILITIES": None}
    files = {**NO_PCI, **ORIN, "/.dockerenv": None, "/dev/nvidia0": None, "/proc/driver/nvidia/version": None}
    nvml = {**nvml, "devices": [_with_rest(nvml["devices"][0])]} if isinstance(nvml, dict) else nvml
    facts = facts_of(environ=environ, files=files, nvml=nvml, torch=HEALTHY)
    assert not [one for one in checks.run(facts) if one.severity in ("WARNING", "ERROR")]


def _with_rest(answers):
    calls = RecordedHost().nvml_answers["devices"][0]
    return {call: {"unreadable": "NVML: Not Supported"} for call in calls} | answers


def test_a_jetson_board_without_torch():
    assert finding("cpu-only", files=ORIN, torch=Unreadable("no torch")).severity == "NOT_APPLICABLE"

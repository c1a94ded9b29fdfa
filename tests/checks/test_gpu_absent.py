from dataclasses import replace

import pytest
from recorded import RecordedHost, facts_of

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

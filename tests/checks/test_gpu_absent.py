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
        ({"environ": {"SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "0"}}, "slurm granted 0"),
    ],
)
def test_asked_for_and_absent(asked, sign):
    found = finding("cpu-only", **asked)
    assert found.severity == "ERROR"
    assert sign in found.message
    assert "--gpus" in found.remedy


@pytest.mark.parametrize("value", ["", "none", "void"])
def test_not_asked_for(value):
    found = finding("cpu-only", environ={"NVIDIA_VISIBLE_DEVICES": value})
    assert found.severity == "NOT_APPLICABLE"
    assert "no GPU was asked for" in found.message


@pytest.mark.parametrize("value", ["", "-1", "99"])
def test_hidden_by_the_environment(value):
    found = finding(environ={"CUDA_VISIBLE_DEVICES": value}, torch={"devices": []})
    assert found.severity == "WARNING"
    assert found.remedy == "unset CUDA_VISIBLE_DEVICES"


def test_hidden_though_torch_did_not_answer():
    assert finding(environ={"CUDA_VISIBLE_DEVICES": ""}, torch=Unreadable("no answer")).severity == "WARNING"


def test_nothing_is_hidden_where_nothing_is():
    assert finding("cpu-only", environ={"CUDA_VISIBLE_DEVICES": ""}).severity == "NOT_APPLICABLE"


def test_listed_by_nvml_but_not_seen_by_torch():
    found = finding(torch={"devices": []})
    assert found.severity == "ERROR"
    assert "NVML lists 1 GPU, but torch can use none" in found.message


def test_listed_by_nvml_but_torch_fails():
    found = finding(torch={"devices": None, "gaps": {"devices": "RuntimeError: system not yet initialized"}})
    assert found.severity == "ERROR"
    assert "system not yet initialized" in found.message


def test_listed_by_nvml_where_there_is_no_torch():
    assert finding(torch=Unreadable("no answer")).severity == "OK"


def test_wsl_s_device_may_be_any_maker_s():
    found = finding("cpu-only", files={"/dev/dxg": ""})
    assert found.severity == "UNKNOWN"
    assert "/dev/dxg" in found.message


def test_some_hidden_on_purpose():
    devices = RecordedHost("nvidia-h200-x8").torch["devices"][3:4]
    found = finding("nvidia-h200-x8", environ={"CUDA_VISIBLE_DEVICES": "3"}, torch={"devices": devices})
    assert (found.severity, found.message) == ("OK", "torch sees 1 GPU")

from dataclasses import replace

import pytest
from recorded import RecordedHost, facts_of

from gputune.checks import expected_gpus
from gputune.host import Unreadable

EIGHT, BUS = "nvidia-h200-x8", "/sys/bus/pci/devices"
SEVEN = [0, 1, 2, 3, 4, 5, 7]
LOST = "0000:00:0c.0"
VARIABLE = "NVIDIA_VISIBLE_DEVICES"
UNSET = {VARIABLE: None}
UUIDS = [gpu.uuid for gpu in facts_of(EIGHT).gpus]


def machine(listed=range(8), seen=None, expect=None, **overrides):
    """Eight GPUs on the bus, of which NVML and torch list some; a GPU that is not listed has no device file either."""
    host = RecordedHost(EIGHT)
    nvml = {**host.nvml_answers, "devices": [host.nvml_answers["devices"][index] for index in listed]}
    torch = {"devices": [host.torch["devices"][index] for index in (listed if seen is None else seen)]}
    gone = {f"/dev/nvidia{index}": None for index in range(8) if index not in listed}
    overrides = {"nvml": nvml, "torch": torch, **overrides, "files": gone | overrides.get("files", {})}
    return replace(facts_of(EIGHT, **overrides), gpus_expected=expect)


def finding(*args, **kwargs):
    [one] = expected_gpus.check(machine(*args, **kwargs), ())
    return one


GRANTS = {
    "all": {VARIABLE: "all"},
    "eight numbers": {VARIABLE: "0,1,2,3,4,5,6,7"},
    "eight UUIDs": {VARIABLE: ",".join(UUIDS)},
    "names of CDI": {VARIABLE: ",".join(f"nvidia.com/gpu={index}" for index in range(8))},
    "Slurm's list": {**UNSET, "SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7"},
    "Slurm's range": {**UNSET, "SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "0-7"},
    "Slurm's count": {**UNSET, "SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "8"},
    "a pod's UUIDs": {VARIABLE: ",".join(UUIDS), "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
}


@pytest.mark.parametrize("grant", GRANTS)
def test_fewer_than_granted_is_an_error_that_names_the_address(grant):
    assert finding(environ=GRANTS[grant]).severity == "OK"
    one = finding(SEVEN, environ=GRANTS[grant])
    assert (one.severity, one.subject) == ("ERROR", LOST)
    assert LOST in one.message
    assert "sudo dmesg | grep NVRM" in one.remedy


@pytest.mark.parametrize("grant", GRANTS)
def test_where_the_device_file_is_still_there_gpu_lost_complains(grant):
    one = finding(SEVEN, environ=GRANTS[grant], files={"/dev/nvidia6": ""})
    assert (one.severity, "see gpu_lost" in one.message) == ("NOT_APPLICABLE", True)


def test_one_that_has_left_the_bus_is_named_by_its_uuid():
    one = finding(SEVEN, environ=GRANTS["eight UUIDs"], files={f"{BUS}/{LOST}/uevent": None})
    assert (one.severity, one.subject) == ("ERROR", VARIABLE)
    assert one.message.endswith(f"not listed: {UUIDS[6]}")


def test_some_of_several_are_missing_and_which_is_not_known():
    one = finding([0, 1], environ={**UNSET, "SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0-2"})
    assert (one.severity, one.subject) == ("ERROR", "SLURM_JOB_GPUS")
    assert "not listed: 1 of 0000:00:08.0" in one.message


PART = {
    "by number": {VARIABLE: "0,1"},
    "by UUID": {VARIABLE: ",".join(UUIDS[:2])},
    "by Slurm": {VARIABLE: "all", "SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "4,5"},
    "in a pod whose image says all": {VARIABLE: "all", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    "in a pod, by mounts": {VARIABLE: "/var/run/nvidia-container-devices", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    "in a pod, by CDI": {VARIABLE: "void", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
    "as MIG slices": {VARIABLE: "MIG-5a5a,MIG-6b6b,MIG-7c7c"},
    "nobody says": UNSET,
}


@pytest.mark.parametrize("part", PART)
def test_two_of_eight_are_right_where_two_were_given(part):
    assert finding([0, 1], environ=PART[part]).severity in ("OK", "NOT_APPLICABLE")


def test_a_cgroup_that_forbids_the_others_gave_two():
    denied = [f"/dev/nvidia{index}" for index in range(2, 8)]
    assert finding([0, 1], files=dict.fromkeys(denied, ""), denied=denied).severity == "OK"


@pytest.mark.parametrize("bound", ["SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK"])
def test_a_task_that_is_bound_to_one_of_the_step_s_gpus(bound):
    environ = {**UNSET, "SLURM_JOB_ID": "7", "SLURM_STEP_GPUS": "0-7", bound: "1"}
    assert finding([3], environ=environ).severity == "NOT_APPLICABLE"


def test_slurm_counts_mig_slices_as_gpus():
    environ = {**UNSET, "SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1,2"}
    assert finding([0], environ=environ, gpu={"MigMode": [1, 1]}).severity == "NOT_APPLICABLE"


@pytest.mark.parametrize("count", ["0", ""])
def test_slurm_granted_none(count):
    assert finding(environ={VARIABLE: "all", "SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": count}).severity in (
        "OK", "NOT_APPLICABLE"
    )  # fmt: skip


@pytest.mark.parametrize(("expect", "severity"), [(8, "OK"), (9, "ERROR"), (7, "WARNING"), (0, "WARNING")])
def test_a_number_that_the_user_expects(expect, severity):
    one = finding(expect=expect)
    assert one.severity == severity
    assert f"--expect-gpus {expect}, and there are 8 GPUs" in one.message


def test_fewer_than_expected_are_named():
    one = finding(SEVEN, expect=8, environ=UNSET)
    assert (one.severity, one.subject) == ("ERROR", LOST)


def test_what_cuda_visible_devices_hides_is_not_there_for_who_expects_it():
    one = finding(seen=[0, 1], expect=8, environ={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert (one.severity, one.subject, one.remedy) == ("ERROR", "CUDA_VISIBLE_DEVICES", "unset CUDA_VISIBLE_DEVICES")
    assert finding(seen=[0, 1], expect=2, environ={"CUDA_VISIBLE_DEVICES": "0,1"}).severity == "OK"
    assert finding(seen=[0, 1], environ={"CUDA_VISIBLE_DEVICES": "0,1"}).severity == "OK"


@pytest.mark.parametrize(("expect", "severity"), [(0, "OK"), (None, "NOT_APPLICABLE"), (2, "NOT_APPLICABLE")])
def test_no_gpu_at_all(expect, severity):
    [one] = expected_gpus.check(replace(facts_of("cpu-only"), gpus_expected=expect), ())
    assert one.severity == severity
    assert ("see gpu_absent" in one.message) == (expect == 2)


def test_torch_sees_one_fewer_and_nothing_hides_it():
    findings = list(expected_gpus.check(machine(seen=SEVEN), ()))
    assert [(one.severity, one.subject) for one in findings] == [("ERROR", "GPU 6"), ("OK", None)]
    assert "torch sees 7, not GPU 6" in findings[0].message


HIDES = {
    "CUDA_VISIBLE_DEVICES": {"environ": {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,7"}},
    "a compute mode": {"gpu": {"ComputeMode": 2}, "gpu_index": 6},
    "an unread compute mode": {"gpu": {"ComputeMode": {"unreadable": "NVML: Not Supported"}}, "gpu_index": 6},
    "MIG": {"gpu": {"MigMode": [1, 1]}, "gpu_index": 6},
    "a GPU that gpu_lost complains of": {"gpu": {"Temperature:0": {"unreadable": "NVML: GPU is lost"}}, "gpu_index": 6},
}


@pytest.mark.parametrize("why", HIDES)
def test_torch_sees_one_fewer_and_this_hides_it(why):
    assert finding(seen=SEVEN, **HIDES[why]).severity == "OK"


def test_numbers_of_which_torch_sees_fewer():
    [one, _] = expected_gpus.check(machine(seen=[1], environ={"CUDA_VISIBLE_DEVICES": "1,3"}), ())
    assert (one.severity, one.subject) == ("ERROR", "GPU 3")


NO_NVML = {"nvml": Unreadable("NVML: Driver Not Loaded", "driver_not_loaded")}


def test_without_nvml_torch_s_count_has_to_do():
    assert finding(**NO_NVML).severity == "OK"
    assert finding(seen=SEVEN, **NO_NVML).severity == "ERROR"


def test_device_files_alone_show_what_is_missing_but_not_that_the_others_work():
    blind = {**NO_NVML, "torch": {"devices": []}}
    assert finding(**blind).severity == "UNKNOWN"
    assert finding(SEVEN, **blind).severity == "ERROR"

"""Device files that all GPUs share, where something fails for want of them."""

import pytest
from recorded import found

from gputune.checks import device_nodes
from gputune.host import Unreadable

CONTROL, MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
BOTH = dict.fromkeys((CONTROL, MEMORY), "")
NO_DEVICES = {"devices": [], "gaps": {}}
FAILED = {"devices": None, "gaps": {"devices": "RuntimeError: Error 999: unknown error"}}
ON_THE_HOST = {"/.dockerenv": None}
NOT_OPENED = Unreadable("NVML: Unknown Error", "unknown_error")


def judged(files=None, **more):
    return [(one.severity, one.subject) for one in found(device_nodes, files=ON_THE_HOST | (files or {}), **more)]


@pytest.mark.parametrize("torch", [NO_DEVICES, FAILED])
@pytest.mark.parametrize(
    "fault", [{"files": {CONTROL: ""}}, {"files": BOTH, "denied": [MEMORY]}], ids=["missing", "forbidden"]
)
def test_cuda_without_nvidia_uvm(torch, fault):
    assert judged(torch=torch, **fault) == [("ERROR", MEMORY)]


@pytest.mark.parametrize("cause", ["unknown_error", "no_permission", "driver_not_loaded"])
@pytest.mark.parametrize(
    "fault", [{"files": {MEMORY: ""}}, {"files": BOTH, "denied": [CONTROL]}], ids=["missing", "forbidden"]
)
def test_nvml_without_nvidiactl(fault, cause):
    assert judged(nvml=Unreadable("NVML", cause), torch=FAILED, **fault) == [("ERROR", CONTROL)]


def test_where_no_file_of_a_gpu_may_be_opened_either_gpu_absent_says_so():
    revoked = {"files": BOTH, "denied": [CONTROL, MEMORY, "/dev/nvidia0"], "nvml": NOT_OPENED, "torch": NO_DEVICES}
    [one] = found(device_nodes, **revoked)
    assert (one.severity, "see gpu_absent" in one.message) == ("NOT_APPLICABLE", True)


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ({"files": {CONTROL: ""}}, "sudo nvidia-modprobe -u -c=0  # "),
        ({"files": BOTH, "denied": [MEMORY]}, "sudo chmod 0666 /dev/nvidia-uvm  # "),
        ({"files": BOTH, "denied": [MEMORY], "environ": {"SLURM_JOB_ID": "1"}}, "ask Slurm for a GPU"),
        ({"files": {CONTROL: "", "/.dockerenv": ""}}, "start the container again"),
        ({"files": {CONTROL: ""}, "environ": {"APPTAINER_CONTAINER": "/a.sif"}}, "apptainer exec --nv IMAGE  # "),
    ],
)
def test_the_remedy_fits_the_place(fault, remedy):
    files = ON_THE_HOST | fault["files"]
    [one] = found(device_nodes, torch=NO_DEVICES, **{**fault, "files": files})
    assert one.remedy.startswith(remedy)


def test_where_cuda_was_not_tried_a_forbidden_file_is_a_warning():
    assert judged(BOTH, denied=[MEMORY], torch=Unreadable("not installed")) == [("WARNING", MEMORY)]


@pytest.mark.parametrize("torch", [Unreadable("not installed"), {"cuda": None, "devices": None}])
def test_a_file_that_the_first_program_makes_is_not_missed_before(torch):
    assert judged({CONTROL: ""}, torch=torch) == [("OK", None)]


def test_what_works_needs_nothing():
    assert judged() == judged(BOTH) == [("OK", None)]


@pytest.mark.parametrize("torch", [NO_DEVICES, FAILED, Unreadable("no answer")])
def test_files_that_are_listed_nowhere_though_nvml_opens_them_are_no_reason(torch):
    assert judged(torch=torch) == [("OK", None)]


@pytest.mark.parametrize("cause", ["version_mismatch", "not_installed", "library_not_found", None])
def test_nvml_that_fails_for_another_reason(cause):
    assert judged(nvml=Unreadable("NVML", cause), torch=NO_DEVICES) == [("NOT_APPLICABLE", None)]


def test_what_waits_for_fabric_manager_is_not_blamed_on_files():
    waits = {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}
    assert judged({CONTROL: ""}, torch=waits) == [("OK", None)]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"files": {"/dev/dxg": "", "/dev/nvidia0": None}},
        {"gpu": {"Name": "Orin (nvgpu)"}},
        {"environ": {"CUDA_VISIBLE_DEVICES": ""}},
        {"nvml": Unreadable("NVML", "driver_not_loaded"), "files": {"/proc/driver/nvidia/version": None}},
        {
            "nvml": Unreadable("NVML", "driver_not_loaded"),
            "files": {"/dev/nvidia0": None},
            "environ": {"NVIDIA_VISIBLE_DEVICES": None},
        },
    ],
    ids=["WSL", "Jetson", "hidden", "no driver", "no GPU asked for"],
)
def test_where_they_do_not_matter(elsewhere):
    files = elsewhere.pop("files", None) or {}
    assert judged(files, torch=NO_DEVICES, **elsewhere) == [("NOT_APPLICABLE", None)]

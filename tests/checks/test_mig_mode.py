import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import mig_mode

UNSUPPORTED = {"MigMode": {"unreadable": NOT_SUPPORTED}}
A40 = {"Name": "NVIDIA A40", "CudaComputeCapability": [8, 6]}
RTX_5090 = {"Name": "NVIDIA GeForce RTX 5090", "CudaComputeCapability": [12, 0], "Brand": 5}
RTX_PRO_4000 = {"Name": "NVIDIA RTX PRO 4000 Blackwell", "CudaComputeCapability": [12, 0], "Brand": 13}
GB10 = {"Name": "NVIDIA GB10", "CudaComputeCapability": [12, 1]}
UNTOLD = {"CudaComputeCapability": {"unreadable": "?"}}


def finding(**gpu):
    [only] = found(mig_mode, gpu=gpu)
    return only


def test_on_is_a_warning():
    warned = finding(MigMode=[1, 1])
    assert (warned.severity, warned.subject) == ("WARNING", "GPU 0")
    assert warned.message.startswith("MIG is on")
    first = "nvidia-smi -L | grep -A1 GPU-f5f3a5e9-939a-980a-1428-1d671bf50b09 | grep -om1 'MIG-[^)]*'"
    assert warned.remedy.startswith(f"CUDA_VISIBLE_DEVICES=$({first}) gputune probe  # ")
    assert warned.remedy.endswith(
        "sudo nvidia-smi mig -i 00000000:00:06.0 -dci; sudo nvidia-smi mig -i 00000000:00:06.0 -dgi; "
        "sudo nvidia-smi -i 00000000:00:06.0 -mig 0"
    )


def test_a_job_with_a_slice_of_its_own_probes_that_one():
    [warned] = found(mig_mode, gpu={"MigMode": [1, 1]}, environ={"CUDA_VISIBLE_DEVICES": "MIG-1"})
    assert warned.remedy.startswith("gputune probe  # ")


@pytest.mark.parametrize(
    ("modes", "told"),
    [([0, 1], "MIG is off, and will be on after a reset"), ([1, 0], "MIG is on, and will be off after a reset")],
)
def test_a_mode_that_waits_for_a_reset(modes, told):
    warned = finding(MigMode=modes)
    assert (warned.severity, warned.message) == ("WARNING", told)
    assert "; sudo nvidia-smi -i 00000000:00:06.0 --gpu-reset; " in warned.remedy


@pytest.mark.parametrize(
    ("gpu", "named"),
    [
        (A40, "NVIDIA A40 (8.6) has no MIG"),
        (RTX_5090, "NVIDIA GeForce RTX 5090 (12.0) has no MIG"),
        (RTX_PRO_4000, "NVIDIA RTX PRO 4000 Blackwell (12.0) has no MIG"),
        (GB10, "NVIDIA GB10 (12.1) has no MIG"),
        ({**UNTOLD, "Name": "NVIDIA TITAN V", "Brand": 6}, "NVIDIA TITAN V is a consumer GPU"),
        ({"VirtualizationMode": 2}, "vGPU"),
    ],
)
def test_a_gpu_without_mig_is_named(gpu, named):
    lacking = finding(**gpu, **UNSUPPORTED)
    assert lacking.severity == "NOT_APPLICABLE"
    assert named in lacking.message


@pytest.mark.parametrize("capability", [[8, 0], [9, 0], [10, 0], [10, 3], [11, 0], {"unreadable": "?"}])
def test_one_that_has_mig_and_does_not_tell_is_unknown(capability):
    unread = finding(CudaComputeCapability=capability, **UNSUPPORTED)
    assert unread.severity == "UNKNOWN"
    assert NOT_SUPPORTED in unread.message


@pytest.mark.parametrize("model", ["4500", "5000", "6000"])
def test_the_larger_workstation_gpus_have_mig(model):
    unread = finding(**RTX_PRO_4000 | {"Name": f"NVIDIA RTX PRO {model} Blackwell"}, **UNSUPPORTED)
    assert unread.severity == "UNKNOWN"
    assert NOT_SUPPORTED in unread.message


@pytest.mark.parametrize("answer", [{"unreadable": "NVML: Unknown Error"}, [2, 0], [0]])
def test_what_cannot_be_read_is_unknown_whatever_the_gpu(answer):
    unread = finding(**RTX_5090, MigMode=answer)
    assert unread.severity == "UNKNOWN"
    assert "NVML" in unread.message

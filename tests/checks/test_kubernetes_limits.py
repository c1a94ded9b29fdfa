import pytest
from recorded import found
from trees import CGROUP

from gputune.checks import kubernetes_limits

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def finding(cpu, memory, environ=POD, cpus=16):
    files = {f"{CGROUP}/cpu.max": cpu, f"{CGROUP}/job/memory.max": memory}
    [only] = found(kubernetes_limits, files=files, environ=environ, affinity=range(cpus))
    return only


@pytest.mark.parametrize(
    ("cpu", "memory", "missing"),
    [
        ("max 100000", "68719476736", "no CPU limit"),
        ("800000 100000", "max", "no memory limit"),
        (None, None, "no CPU and no memory limit"),
    ],
)
def test_a_pod_without_a_limit_is_a_warning(cpu, memory, missing):
    warned = finding(cpu, memory)
    assert warned.severity == "WARNING"
    assert warned.message == f"the pod has {missing}, and the node has 16 CPUs"
    assert warned.remedy == (
        'resources: {limits: {cpu: "14", memory: 112Gi, nvidia.com/gpu: 1}}  '
        "# in the container of the pod's manifest; this pod's part of the node: 1 GPU of 1"
    )


@pytest.mark.parametrize(
    ("cpu", "told"), [("800000 100000", "limits: 8 CPUs, 64.0 GiB"), ("250000 100000", "limits: 2.5 CPUs, 64.0 GiB")]
)
def test_a_pod_with_both_limits_is_fine(cpu, told):
    fine = finding(cpu, "68719476736")
    assert (fine.severity, fine.message) == ("OK", told)


def test_cpus_of_its_own_are_as_good_as_a_limit():
    fine = finding("max 100000", "68719476736", cpus=15)
    assert (fine.severity, fine.message) == ("OK", "limits: 15 CPUs, 64.0 GiB")
    assert finding("max 100000", "max", cpus=15).message.startswith("the pod has no memory limit,")


@pytest.mark.parametrize(
    ("cpu", "memory"), [("garbage", "68719476736"), ("800000 100000", "garbage"), ("garbage", "max")]
)
def test_a_limit_that_cannot_be_read_is_unknown(cpu, memory):
    unread = finding(cpu, memory)
    assert unread.severity == "UNKNOWN"
    assert "garbage" in unread.message


@pytest.mark.parametrize("environ", [{}, {**POD, "SLURM_JOB_ID": "7"}], ids=["a container", "a Slurm job in a pod"])
def test_elsewhere_limits_are_somebody_else_s(environ):
    assert finding(None, None, environ).severity == "NOT_APPLICABLE"


def bus(count):
    entry = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"
    return {f"/sys/bus/pci/devices/0000:{number:02x}:00.0/uevent": entry for number in range(0x10, 0x10 + count)}


@pytest.mark.parametrize(
    ("machine", "beside", "limits"),
    [
        (
            "nvidia-h200-x8",
            0,
            "nvidia.com/gpu: 8}}  # in the container of the pod's manifest; this pod's part of the node: 8 GPUs of 8",
        ),
        ("nvidia-h200-x1", 7, 'cpu: "1", memory: 14Gi, nvidia.com/gpu: 1}}'),
        ("cpu-only", 0, 'cpu: "'),
    ],
)
def test_the_share_is_that_of_the_gpus_that_the_pod_has(machine, beside, limits):
    [warned] = found(kubernetes_limits, machine, files=bus(beside), environ=POD)
    assert limits in warned.remedy
    assert ("nvidia.com/gpu" in warned.remedy) == (machine != "cpu-only")


def test_a_pod_with_mig_slices_asks_for_them_by_a_name_of_their_own():
    [warned] = found(kubernetes_limits, gpu={"MigMode": [1, 1]}, environ=POD)
    assert "nvidia.com/gpu" not in warned.remedy

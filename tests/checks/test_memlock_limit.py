import pytest
from recorded import found

from gputune.checks import memlock_limit

ADAPTER = {"/dev/infiniband/uverbs0": ""}
GIB = 1 << 30


def finding(limit, adapter=ADAPTER, capabilities=0, environ=None):
    limits = f"Max locked memory         {limit}             unlimited            bytes     \n"
    [only] = found(
        memlock_limit,
        files={"/proc/self/limits": limits, "/proc/self/status": f"CapEff:\t{capabilities:016x}\n", **adapter},
        environ=environ,
    )
    return only


@pytest.mark.parametrize(("limit", "told"), [(65536, "64 KiB"), (8 << 20, "8 MiB"), (GIB - 1, "MiB")])
def test_little_memory_that_may_be_locked_beside_infiniband_is_a_warning(limit, told):
    warned = finding(limit)
    assert warned.severity == "WARNING"
    assert f"{told} may be locked" in warned.message
    assert warned.remedy.startswith("docker run --ulimit memlock=-1 IMAGE  # ")


@pytest.mark.parametrize(
    ("environ", "remedy"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "securityContext: {capabilities: {add: [IPC_LOCK]}}  # "),
        (
            {"SLURM_JOB_ID": "7"},
            "sudo mkdir -p /etc/systemd/system/slurmd.service.d && printf '[Service]\\nLimitMEMLOCK=",
        ),
        ({"APPTAINER_CONTAINER": "x.sif"}, 'echo "$(id -un) - memlock unlimited" | sudo tee '),
    ],
)
def test_the_remedy_is_for_what_set_the_limit(environ, remedy):
    assert finding(65536, environ=environ).remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("limit", "told"), [(GIB, "1.0 GiB may be locked"), ("unlimited", "any amount of memory may be locked")]
)
def test_enough_is_fine(limit, told):
    fine = finding(limit)
    assert (fine.severity, fine.message) == ("OK", told)


@pytest.mark.parametrize(("capabilities", "severity"), [(1 << 14, "OK"), (~(1 << 14) % (1 << 41), "WARNING")])
def test_a_process_with_the_capability_may_lock_all_it_likes(capabilities, severity):
    assert finding(65536, capabilities=capabilities).severity == severity


@pytest.mark.parametrize("device", [{}, {"/dev/infiniband/rdma_cm": ""}])
def test_without_an_adapter_nothing_needs_to_be_locked(device):
    assert finding(65536, device).severity == "NOT_APPLICABLE"


@pytest.mark.parametrize(
    ("limits", "reason"), [(None, "No such file"), ("Max open files 1 1 files\n", "locked memory")]
)
def test_a_limit_that_cannot_be_read_is_unknown(limits, reason):
    [unread] = found(memlock_limit, files={"/proc/self/limits": limits, "/proc/self/status": None, **ADAPTER})
    assert unread.severity == "UNKNOWN"
    assert reason in unread.message

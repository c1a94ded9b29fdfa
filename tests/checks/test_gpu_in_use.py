import pytest
from recorded import RecordedHost, found

from gputune.checks import gpu_in_use

COMPUTE, MPS = "ComputeRunningProcesses", "MPSComputeRunningProcesses"
OLD, NEW = "MemoryInfo", "MemoryInfo:33554472"
GIB = 1 << 30
UNREAD = {"unreadable": "NVML: Unknown Error"}


def finding(gpu):
    [one] = found(gpu_in_use, gpu=gpu)
    return one


def of(*pids):
    return [{"pid": pid, "usedGpuMemory": None} for pid in pids]


def memory(used):
    return {"total": 150754820096, "used": used}


@pytest.mark.parametrize(
    ("compute", "mps", "told"),
    [((1,), (), "1 process"), ((), (1,), "1 process"), ((1,), (2,), "2 processes"), ((1, 2), (2,), "2 processes")],
)
def test_processes_of_others(compute, mps, told):
    one = finding({COMPUTE: of(*compute), MPS: of(*mps), NEW: memory(9 * GIB)})
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message == f"{told} on it; 9.0 GiB of its memory is in use"
    assert "nvidia-smi" in one.remedy
    assert "CUDA_VISIBLE_DEVICES" in one.remedy


def test_a_process_counts_whatever_memory_it_has():
    assert finding({COMPUTE: of(1)}).severity == "WARNING"
    assert finding({COMPUTE: of(1), NEW: UNREAD, OLD: UNREAD}).message == "1 process on it"


@pytest.mark.parametrize(("used", "severity"), [(0, "OK"), (GIB, "OK"), (GIB + 1, "WARNING"), (9 * GIB, "WARNING")])
def test_memory_beyond_a_driver_s_own_reserve_is_somebody_s(used, severity):
    assert finding({NEW: memory(used)}).severity == severity


def test_memory_without_a_process_is_said():
    one = finding({NEW: memory(9 * GIB)})
    assert one.message == "9.0 GiB of its memory is in use, though no compute process is visible from here"
    assert "CUDA_VISIBLE_DEVICES" in one.remedy


def test_the_reserve_that_older_drivers_count_as_used_is_nobody_s():
    assert finding({NEW: UNREAD, OLD: memory(644939776)}).severity == "OK"


@pytest.mark.parametrize("gpu", [{COMPUTE: UNREAD}, {MPS: UNREAD}, {NEW: UNREAD, OLD: UNREAD}])
def test_what_is_not_read_is_unknown(gpu):
    one = finding(gpu)
    assert (one.severity, one.subject) == ("UNKNOWN", "GPU 0")
    assert "NVML: Unknown Error" in one.message


def test_a_gpu_that_torch_does_not_see_is_another_s():
    devices = RecordedHost("nvidia-h200-x8").torch["devices"][:1]
    busy = {"ComputeRunningProcesses": [{"pid": 1}]}
    findings = found(gpu_in_use, "nvidia-h200-x8", gpu=busy, gpu_index=5, torch={"devices": devices})
    assert [one.severity for one in findings] == ["OK"] + ["NOT_APPLICABLE"] * 7

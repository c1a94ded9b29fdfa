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
    assert one.remedy.startswith("sudo fuser -v /dev/nvidia*  # on the host, as root; ")
    assert "CUDA_VISIBLE_DEVICES" in one.remedy


def desktop(*pids, used=GIB, each=None, **answers):
    """A desktop's card and its graphics processes, which use so much memory each."""
    processes = [{"pid": pid, "usedGpuMemory": each} for pid in pids]
    return {"Brand": 5, "GraphicsRunningProcesses": processes, NEW: memory(used), **answers}


@pytest.mark.parametrize(
    ("gpu", "severity"),
    [
        (desktop(7, 8, used=2 * GIB), "OK"),  # Xorg and a browser
        (desktop(7, 8, used=2 * GIB, **{COMPUTE: of(8)}), "OK"),  # the browser computes, too
        (desktop(7, used=2 * GIB, **{COMPUTE: of(9)}), "WARNING"),
        (desktop(7, used=4 * GIB + 1), "WARNING"),
        (desktop(7, used=9 * GIB, each=8 * GIB), "OK"),
        (desktop(7, used=9 * GIB, each=8 * GIB, Brand=14), "OK"),
        (desktop(7, used=2 * GIB, Brand=14), "WARNING"),  # a data-centre card has no desktop
        (desktop(used=2 * GIB), "WARNING"),
        (desktop(used=2 * GIB, DisplayActive=1), "OK"),  # in a container, which sees no process
        (desktop(used=2 * GIB, DisplayActive=0), "WARNING"),
        (desktop(used=2 * GIB, DisplayActive=UNREAD, GraphicsRunningProcesses=UNREAD), "WARNING"),
    ],
)
def test_a_desktop_is_no_other_user(gpu, severity):
    assert finding(gpu).severity == severity


def test_a_desktop_s_processes_are_said():
    assert finding(desktop(7, 8)).message == "no other process uses it but 2 graphics processes"


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

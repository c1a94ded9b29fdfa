"""The state of the GPU while it was measured is summed up, and nothing is invented where NVML does not answer."""

import os

import pytest
from recorded import RecordedHost

from gputune.bench_process.telemetry import Telemetry, other_sm_percent, summary
from gputune.host import Unreadable

OURS = os.getpid()


def test_medians_of_clock_and_power_all_throttle_reasons_and_the_highest_of_everything_else():
    assert summary([
        {"sm_clock_mhz": 1400.0, "power_watts": 690.0, "throttle_reasons": 4.0, "pcie_generation": 1.0},
        {"sm_clock_mhz": 1500.0, "power_watts": 700.4, "throttle_reasons": 32.0, "pcie_generation": 5.0},
        {"sm_clock_mhz": 1980.0, "power_watts": 695.0, "throttle_reasons": 4.0, "gpu_processes": 3.0},
        {"other_sm_percent": 40.0, "gpu_processes": 2.0},
        {"other_sm_percent": 0.0},
    ]) == {
        "sm_clock_mhz": 1500.0, "power_watts": 695.0, "throttle_reasons": 36.0, "pcie_generation": 5.0,
        "gpu_processes": 3.0, "other_sm_percent": 40.0,
    }  # fmt: skip
    assert summary([]) == {}


def test_without_a_gpu_there_is_nothing_to_sample():
    assert Telemetry(None).sample() == {}
    assert Telemetry(0, RecordedHost("cpu-only")).sample() == {}


class Nvml:
    """A GPU that this and other processes use; its utilisation is answered as NVML does, newer samples only."""

    def __init__(self, pids=(OURS,), mps=(), samples=()):
        self.pids, self.mps, self.samples = pids, mps, list(samples)
        self.asked = []

    def device(self, index, name, *args):
        self.asked.append((name, *args))
        if name == "ProcessUtilization":
            newer = [sample for sample in self.samples if sample["timeStamp"] > args[0]]
            if not newer:
                raise Unreadable("NVML: Not Found")
            return newer
        pids = {"ComputeRunningProcesses": self.pids, "MPSComputeRunningProcesses": self.mps}.get(name)
        if pids is None:
            raise Unreadable("NVML: Not Supported")
        return [{"pid": pid, "usedGpuMemory": None} for pid in pids]


def used(pid, percent, at):
    return {"pid": pid, "smUtil": percent, "timeStamp": at}


def watching(nvml):
    return Telemetry(0, RecordedHost(nvml=nvml))


@pytest.mark.parametrize(
    ("pids", "mps", "count"),
    [([OURS], [], 1.0), ([OURS, 7, 8], [], 3.0), ([7], [OURS, 8], 3.0), ([OURS, 7], [7], 2.0), ([], [], None)],
    ids=["this one", "others", "of MPS", "one in both lists", "hidden by a container"],
)
def test_compute_processes_are_counted_once_and_this_one_too(pids, mps, count):
    assert watching(Nvml(pids, mps)).sample().get("gpu_processes") == count


@pytest.mark.parametrize(
    ("samples", "percent"),
    [
        ([used(OURS, 90, 100), used(7, 30, 101), used(8, 45, 102)], 45.0),
        ([used(8, 45, 99), used(OURS, 90, 100), used(7, 30, 101)], 30.0),
        ([used(OURS, 90, 100)], 0.0),
        ([], None),
        ([used(7, 30, 101)], None),
    ],
    ids=["the busiest", "only since the last time", "nobody else", "no samples", "pids of another namespace"],
)
def test_the_utilisation_by_other_processes(samples, percent):
    assert other_sm_percent(samples, OURS, since=99) == percent


def test_what_was_before_the_measurement_is_not_told():
    nvml = Nvml(samples=[used(OURS, 10, 1000), used(7, 80, 1001)])
    telemetry = watching(nvml)
    assert "other_sm_percent" not in telemetry.sample()
    nvml.samples += [used(OURS, 90, 1002), used(7, 25, 1003)]
    assert telemetry.sample()["other_sm_percent"] == 25.0
    assert "other_sm_percent" not in telemetry.sample()
    assert [call for call in nvml.asked if call[0] == "ProcessUtilization"] == [
        ("ProcessUtilization", 0), ("ProcessUtilization", 1001), ("ProcessUtilization", 1003),
    ]  # fmt: skip


class Watched(RecordedHost):
    """A machine whose clock a test sets; that of others moves by a second at each look."""

    now = 50.0

    def monotonic(self):
        return self.now


def test_processes_are_not_asked_for_beside_every_block():
    nvml = Nvml()
    host = Watched(nvml=nvml)
    telemetry = Telemetry(0, host)
    for _ in range(20):
        telemetry.sample()
        host.now += 0.0625
    names = [name for name, *_ in nvml.asked]
    assert names.count("ComputeRunningProcesses") == names.count("ProcessUtilization") == 5
    assert names.count("PowerUsage") == 20

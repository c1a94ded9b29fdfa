"""Every GPU as NVML and torch know it together; a driver that answers oddly costs the answer, never the reading."""

import pytest
from recorded import RecordedHost, facts_of, fits_its_types

from gputune.facts import Health
from gputune.host import Unreadable

NUMBERS = [
    "CudaComputeCapability", "PciInfo", "Architecture", "Brand", "VirtualizationMode", "MemoryInfo",
    "CudaDriverVersion_v2", "count",
]  # fmt: skip
TEXTS = ["Name", "UUID", "DriverVersion"]
FAILURES = [Unreadable("NVML: Not Supported"), OSError("driver/library mismatch")]
NO_TEXT = [None, -1, [], {}, b"", 1.5, True, object()]
NO_NUMBER = [*NO_TEXT, "garbage", "", [None, None], {"total": "many", "used": None, "busId": 3}]


class BrokenNvml:
    """The recorded NVML, of which the calls in `names` answer `answer` (or raise it)."""

    def __init__(self, names, answer):
        self.whole, self.names, self.answer = RecordedHost().nvml(), names, answer

    def _answer(self, name, call, *args):
        if name not in self.names:
            return call(*args)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def system(self, name):
        return self._answer(name, self.whole.system, name)

    def count(self):
        return self._answer("count", self.whole.count)

    def device(self, index, name, *args):
        return self._answer(name, self.whole.device, index, name, *args)


def gaps_of(facts):
    return {gap.fact for gap in facts.gaps}


def test_a_recorded_gpu():
    [gpu] = facts_of().gpus
    assert (gpu.name, gpu.architecture, gpu.compute_capability) == ("NVIDIA H200", "Hopper", "9.0")
    assert (gpu.torch_index, gpu.multiprocessor_count, gpu.memory_used_bytes) == (0, 132, 0)
    assert (gpu.core_count, gpu.vbios, gpu.gsp_firmware) == (16896, "96.00.DA.00.0C", "580.159.04")
    assert (gpu.brand, gpu.virtualization, gpu.pci_bus_id) == ("NVIDIA", "passthrough", "00000000:00:06.0")


@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "nvidia-h200-x8", "cpu-only"])
def test_facts_survive_a_file(machine):
    assert fits_its_types(facts_of(machine))


def test_eight_gpus_are_eight_torch_devices():
    assert [gpu.torch_index for gpu in facts_of("nvidia-h200-x8").gpus] == list(range(8))


def test_torch_s_order_is_found_by_uuid():
    devices = RecordedHost("nvidia-h200-x8").torch["devices"]
    found = facts_of("nvidia-h200-x8", torch={"devices": devices[:3:-1]})
    assert [gpu.torch_index for gpu in found.gpus] == [None, None, None, None, 3, 2, 1, 0]
    assert found.device_gpu("cuda:0").index == 7
    assert found.gpus[0].multiprocessor_count is None


def test_a_torch_without_uuids_still_knows_its_only_gpu():
    device = {**RecordedHost().torch["devices"][0], "uuid": None}
    found = facts_of(torch={"devices": [device]})
    assert found.gpus[0].torch_index == 0
    assert gaps_of(found) == gaps_of(facts_of())


def test_a_torch_without_uuids_does_not_guess_among_several():
    devices = [{**device, "uuid": None} for device in RecordedHost("nvidia-h200-x8").torch["devices"]]
    found = facts_of("nvidia-h200-x8", torch={"devices": devices})
    assert [gpu.torch_index for gpu in found.gpus] == [None] * 8 + list(range(8))
    assert found.device_gpu("cuda:7").compute_capability == "9.0"
    assert "gpu.torch_7" in gaps_of(found)


def test_a_torch_device_that_nvml_does_not_list_is_a_gap():
    device = {**RecordedHost().torch["devices"][0], "uuid": "another"}
    found = facts_of(torch={"devices": [device]})
    assert found.gpus[0].torch_index is None
    assert "gpu.torch_0" in gaps_of(found)


def test_without_nvml_torch_tells_of_its_gpus():
    found = facts_of(nvml=Unreadable("NVML: Shared Library Not Found"))
    [gpu] = found.gpus
    assert (gpu.name, gpu.compute_capability, gpu.health) == ("NVIDIA H200", "9.0", Health())
    assert "driver.nvml" in gaps_of(found)


def test_the_older_memory_call_stands_in():
    class OldDriver(BrokenNvml):
        def device(self, index, name, *args):
            if (name, args) == ("MemoryInfo", (0x02000028,)):
                raise Unreadable("NVML: Function Not Found")
            return super().device(index, name, *args)

    found = facts_of(nvml=OldDriver([], None))
    assert (found.gpus[0].memory_total_bytes, found.gpus[0].memory_used_bytes) == (150754820096, 644939776)
    assert "gpu.0.memory" not in gaps_of(found)


def test_a_name_that_nvml_keeps_is_torch_s():
    assert facts_of(nvml=BrokenNvml(["Name"], None), torch={"devices": []}).gpus[0].name == "unknown GPU"
    device = {**RecordedHost().torch["devices"][0], "name": "torch's name"}
    assert facts_of(nvml=BrokenNvml(["Name"], None), torch={"devices": [device]}).gpus[0].name == "torch's name"
    assert facts_of(torch={"devices": [device]}).gpus[0].name == "NVIDIA H200"


def test_an_architecture_of_the_future_keeps_its_number():
    assert facts_of(nvml=BrokenNvml(["Architecture"], 99)).gpus[0].architecture == "99"


@pytest.mark.parametrize(
    ("name", "answer"),
    [(name, answer) for name in NUMBERS for answer in (*FAILURES, *NO_NUMBER)]
    + [(name, answer) for name in TEXTS for answer in (*FAILURES, *NO_TEXT)],
)
def test_each_call_that_fails_or_answers_garbage_is_a_gap(name, answer):
    found = facts_of(nvml=BrokenNvml([name], answer))
    assert gaps_of(found) - gaps_of(facts_of())
    assert fits_its_types(found)


@pytest.mark.parametrize("answer", [Unreadable("NVML: Not Supported"), *NO_NUMBER])
@pytest.mark.parametrize("counted", [True, False])
def test_all_calls_broken_leave_a_gpu_and_gaps(answer, counted):
    names = [name for name in NUMBERS + TEXTS if name != "count" or not counted]
    found = facts_of(nvml=BrokenNvml(names, answer))
    assert found.gpus
    assert gaps_of(found) - gaps_of(facts_of())
    assert fits_its_types(found)


@pytest.mark.parametrize("lost", [0, 3, 7])
def test_the_one_gpu_without_a_uuid_is_the_one_device_that_is_left(lost):
    gpus = facts_of("nvidia-h200-x8", gpu={"UUID": {"unreadable": "NVML: Unknown Error"}}, gpu_index=lost).gpus
    assert [gpu.torch_index for gpu in gpus] == list(range(8))

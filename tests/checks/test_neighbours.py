"""One card that is not like the others of its name."""

import pytest
from recorded import NOT_SUPPORTED, RecordedHost, found

from gputune.checks import gpu_mix, neighbours
from gputune.host import Unreadable

EIGHT = "nvidia-h200-x8"
TOTAL = 150754820096
DESKTOP = {"Name": "NVIDIA GeForce RTX 3090", "Brand": 15}


def memory(total):
    return {"MemoryInfo:33554472": {"total": total, "used": 0}}


def machine(changes, common=None, count=8):
    """NVML's and torch's answers of the first GPUs of the machine, with `changes` by index."""
    host = RecordedHost(EIGHT)
    devices = [
        device | (common or {}) | changes.get(index, {}) for index, device in enumerate(host.nvml_answers["devices"])
    ]
    torch = [dict(device) for device in host.torch["devices"]]
    for index, device in enumerate(devices):
        torch[index]["multi_processor_count"] = device.pop("sms", 132)
        torch[index]["name"] = device.get("Name", torch[index]["name"])
    nvml = {**host.nvml_answers, "devices": devices[:count]}
    return {"nvml": nvml, "torch": {"devices": torch[:count]}}


def judged(changes, common=None, count=8, check=neighbours, **more):
    return found(check, EIGHT, **{**machine(changes, common, count), **more})


def test_all_alike():
    [one] = judged({})
    assert (one.severity, one.subject) == ("OK", None)
    assert "multiprocessors, CUDA cores, memory, GSP firmware, VBIOS, " in one.message


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sms": 120}, "multiprocessors 120 (theirs: 132)"),
        ({"NumGpuCores": 15360}, "CUDA cores 15360 (theirs: 16896)"),
        (memory(TOTAL * 98 // 100), "memory 137.6 GiB (theirs: 140.4 GiB)"),
        (memory(TOTAL // 2), "memory 70.2 GiB (theirs: 140.4 GiB)"),
        ({"VbiosVersion": "96.00.30.00.01"}, "VBIOS 96.00.30.00.01 (theirs: 96.00.DA.00.0C)"),
        ({"GspFirmwareVersion": "570.86.15"}, "GSP firmware 570.86.15 (theirs: 580.159.04)"),
        ({"GspFirmwareVersion": {"unreadable": NOT_SUPPORTED}}, "GSP firmware off (theirs: 580.159.04)"),
        ({"MaxClockInfo:1": 1755}, "highest clock (MHz) 1755 (theirs: 1980)"),
        ({"PowerManagementDefaultLimit": 600_000}, "default power limit (W) 600 (theirs: 700)"),
        ({"MaxPcieLinkGeneration": 4}, "PCIe generation 4 (theirs: 5)"),
        ({"MaxPcieLinkWidth": 8}, "PCIe lanes 8 (theirs: 16)"),
    ],
)
def test_the_odd_one_out_is_named(change, told):
    [one] = judged({5: change})
    assert (one.severity, one.subject) == ("WARNING", "GPU 5")
    assert one.message == f"unlike its neighbours: {told}"
    assert one.remedy.startswith("nvidia-smi -q -i 00000000:00:0B.0  # ")


def test_all_that_differs_is_in_one_finding():
    [one] = judged({5: {"sms": 120, "NumGpuCores": 15360, "MaxPcieLinkWidth": 8}})
    assert one.message.count("theirs") == 3


def test_several_odd_ones():
    assert [one.subject for one in judged({2: {"sms": 120}, 7: {"MaxPcieLinkWidth": 8}})] == ["GPU 2", "GPU 7"]


def test_retired_pages_make_no_difference():
    assert [one.severity for one in judged({5: memory(TOTAL - TOTAL // 200)})] == ["OK"]


@pytest.mark.parametrize("lesser", [0, 1])
def test_of_two_the_lesser_one_is_named(lesser):
    [one] = judged({lesser: {"sms": 120}}, count=2)
    assert one.subject == f"GPU {lesser}"


def test_of_two_with_other_firmware_both_are_named():
    assert [one.subject for one in judged({1: {"VbiosVersion": "96.00.30.00.01"}}, count=2)] == ["GPU 0", "GPU 1"]


def test_where_there_is_no_majority_those_with_less_are_named():
    assert [one.subject for one in judged({index: {"sms": 120} for index in range(4)})] == [
        "GPU 0", "GPU 1", "GPU 2", "GPU 3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"VbiosVersion": "94.02.42"},
        {"MaxClockInfo:1": 2130},
        {"PowerManagementDefaultLimit": 370_000},
        {"MaxPcieLinkWidth": 4},
    ],
)
def test_desktop_cards_come_from_several_makers_and_sit_in_unequal_slots(change):
    assert [one.severity for one in judged({5: change}, DESKTOP)] == ["OK"]


def test_a_desktop_card_with_fewer_multiprocessors_is_odd_all_the_same():
    assert [one.subject for one in judged({5: {"sms": 80}}, DESKTOP)] == ["GPU 5"]


@pytest.mark.parametrize("total", [TOTAL // 2, TOTAL * 98 // 100])
def test_a_card_that_has_lost_memory_is_no_kind_of_its_own(total):
    assert [one.severity for one in judged({5: memory(total)}, check=gpu_mix)] == ["OK"]


@pytest.mark.parametrize(("common", "count"), [(DESKTOP, 8), ({}, 2)])
def test_two_sizes_of_a_desktop_card_or_of_two_cards_are_two_kinds(common, count):
    changes = {1: memory(TOTAL // 2)}
    assert [one.severity for one in judged(changes, common, count, check=gpu_mix)] == ["WARNING"]
    assert {one.severity for one in judged(changes, common, count)} <= {"OK", "NOT_APPLICABLE"}


def test_other_kinds_are_not_compared():
    other = {"Name": "NVIDIA H100 80GB HBM3", "sms": 114, "MaxClockInfo:1": 1755, **memory(TOTAL // 2)}
    assert [one.severity for one in judged({5: other})] == ["OK"]


@pytest.mark.parametrize("change", [{"MigMode": [1, 1]}, {"VirtualizationMode": 2}])
def test_a_gpu_in_parts_is_not_compared(change):
    assert [one.severity for one in judged({5: change | {"NumGpuCores": 1}})] == ["OK"]


def test_ecc_takes_memory_from_cards_with_gddr():
    [one] = judged({5: {"EccMode": [0, 0]} | memory(TOTAL * 16 // 15)})
    assert one.severity == "OK"


@pytest.mark.parametrize("why", [NOT_SUPPORTED, "NVML: Function Not Found", "NVML: Unknown Error"])
def test_what_one_does_not_tell_is_not_said_to_be_alike(why):
    [one] = judged({5: {"VbiosVersion": {"unreadable": why}}})
    assert (one.severity, "VBIOS" in one.message) == ("OK", False)


def test_without_multiprocessors_or_memory_it_is_unknown():
    unread = {"unreadable": "NVML: Unknown Error"}
    assert [one.severity for one in judged({5: {"NumGpuCores": unread}}, torch={"devices": []})] == ["UNKNOWN"]
    assert [one.severity for one in judged({5: {"MemoryInfo:33554472": unread, "MemoryInfo": unread}})] == ["UNKNOWN"]


def test_one_gpu_has_no_neighbour():
    [one] = found(neighbours)
    assert one.severity == "NOT_APPLICABLE"


def test_gpus_that_nobody_describes_are_unknown():
    [one] = found(neighbours, EIGHT, nvml=Unreadable("no NVML"), torch={"devices": []})
    assert one.severity == "UNKNOWN"

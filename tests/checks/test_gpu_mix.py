from dataclasses import replace

import pytest
from recorded import RecordedHost, facts_of, found

from gputune.checks import gpu_mix
from gputune.host import Unreadable

EIGHT, GIB = "nvidia-h200-x8", 1 << 30


def of_sizes(*sizes):
    facts = facts_of(EIGHT)
    gpus = tuple(replace(gpu, memory_total_bytes=size) for gpu, size in zip(facts.gpus, sizes, strict=False))
    [only] = gpu_mix.check(replace(facts, gpus=gpus), ())
    return only


def test_all_of_one_kind():
    [one] = found(gpu_mix, EIGHT)
    assert (one.severity, one.message) == ("OK", "8 GPUs of one kind: NVIDIA H200")


def test_two_kinds_are_a_warning():
    [one] = found(gpu_mix, EIGHT, gpu={"Name": "NVIDIA L40S"}, gpu_index=3)
    assert one.severity == "WARNING"
    assert one.message == "GPUs of 2 kinds: NVIDIA H200 (140.4 GiB), NVIDIA L40S (140.4 GiB)"
    assert "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,4,5,6,7 " in one.remedy


def test_torch_s_list_does_where_nvml_is_missing():
    devices = [dict(one) for one in RecordedHost(EIGHT).torch["devices"]]
    devices[7]["name"] = "NVIDIA L40S"
    [one] = found(gpu_mix, EIGHT, nvml=Unreadable("no NVML"), torch={"devices": devices})
    assert one.severity == "WARNING"
    assert "NVIDIA L40S" in one.message


@pytest.mark.parametrize(("larger", "severity"), [(21 * GIB, "OK"), (21 * GIB + 1, "WARNING")])
def test_memory_may_be_counted_differently_by_a_twentieth(larger, severity):
    assert of_sizes(20 * GIB, larger).severity == severity


@pytest.mark.parametrize("sizes", [(8 * GIB, 12 * GIB), (12 * GIB, 8 * GIB)])
def test_one_name_with_two_sizes_of_memory_is_a_warning(sizes):
    one = of_sizes(*sizes)
    assert one.severity == "WARNING"
    assert all(f"NVIDIA H200 ({size / GIB:.1f} GiB)" in one.message for size in sizes)
    assert "CUDA_VISIBLE_DEVICES=0 " in one.remedy


def test_the_largest_kind_is_the_one_to_choose():
    assert "CUDA_VISIBLE_DEVICES=1,3 " in of_sizes(8 * GIB, 12 * GIB, 24 * GIB, 12 * GIB).remedy


def test_a_gpu_that_cuda_visible_devices_hides_does_not_count():
    left = {
        "torch": {"devices": RecordedHost(EIGHT).torch["devices"][:3]},
        "environ": {"CUDA_VISIBLE_DEVICES": "0,1,2"},
    }
    [one] = found(gpu_mix, EIGHT, gpu={"Name": "NVIDIA T400"}, gpu_index=3, **left)
    assert (one.severity, one.message) == ("OK", "3 GPUs of one kind: NVIDIA H200")


def test_a_mig_slice_is_no_kind_of_its_own():
    slices = [{**RecordedHost(EIGHT).torch["devices"][0], "name": "NVIDIA H200 MIG 1g.18gb", "uuid": "slice"}]
    assert [one.severity for one in found(gpu_mix, EIGHT, torch={"devices": slices})] == ["OK"]


def test_where_torch_sees_none_all_count():
    [one] = found(gpu_mix, EIGHT, gpu={"Name": "NVIDIA L40S"}, gpu_index=3, torch={"devices": []})
    assert one.severity == "WARNING"


@pytest.mark.parametrize("torch", [{"devices": []}, Unreadable("no answer")])
def test_a_gpu_whose_name_cannot_be_read_is_unknown(torch):
    [one] = found(gpu_mix, EIGHT, gpu={"Name": {"unreadable": "NVML: Unknown Error"}}, gpu_index=3, torch=torch)
    assert (one.severity, one.message) == ("UNKNOWN", "not every GPU's name could be read")


@pytest.mark.parametrize("sizes", [(20 * GIB, None, 20 * GIB), (None, None)])
def test_an_unread_size_is_no_other_size(sizes):
    assert of_sizes(*sizes).severity in ("OK", "UNKNOWN")


def test_one_gpu():
    [one] = found(gpu_mix)
    assert (one.severity, one.message) == ("NOT_APPLICABLE", "there is one GPU")


def test_gpus_that_nobody_describes_are_unknown():
    [one] = found(gpu_mix, EIGHT, nvml=Unreadable("no NVML"), torch={"devices": []})
    assert one.severity == "UNKNOWN"

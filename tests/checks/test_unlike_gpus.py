"""GPUs that are of another kind, unlike others of their name, or slower than they."""

from dataclasses import replace

import pytest
from making import row
from recorded import EIGHT, NOT_SUPPORTED, UNREAD, RecordedHost, facts_of, says, table

from gputune.checks import slow_gpu
from gputune.host import Unreadable

GIB, TOTAL = 1 << 30, 150754820096
GPUS, DEVICES = facts_of(EIGHT).gpus, RecordedHost(EIGHT).torch["devices"]
BLIND = {"nvml": Unreadable("no NVML"), "torch": {"devices": []}}
L40S = {"Name": "NVIDIA L40S"}


def sizes(severity, *bytes_, message="", remedy=""):
    gpus = tuple(replace(gpu, memory_total_bytes=size) for gpu, size in zip(GPUS, bytes_, strict=False))
    return says(severity, message, remedy, machine=EIGHT, facts={"gpus": gpus})


def one_of_eight(severity, gpu, message="", remedy="", **more):
    return says(severity, message, remedy, machine=EIGHT, gpu=gpu, gpu_index=3, **more)


LARGEST = "^export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,1,2,4,5,6,7 "
SLICE = {**DEVICES[0], "name": "NVIDIA H200 MIG 1g.18gb", "uuid": "slice"}
NOT_NAMED = "=not every GPU's name could be read"
test_gpu_mix = table(
    "gpu_mix",
    {
        "one kind": says("OK", "=8 GPUs of one kind: NVIDIA H200", machine=EIGHT),
        "two kinds": one_of_eight(
            "WARNING", L40S, "=GPUs of 2 kinds: NVIDIA H200 (140.4 GiB), NVIDIA L40S (140.4 GiB)", LARGEST
        ),
        "torch's list": says(
            "WARNING", "NVIDIA L40S", machine=EIGHT, nvml=Unreadable("no NVML"),
            torch={"devices": [*DEVICES[:7], {**DEVICES[7], "name": "NVIDIA L40S"}]},
        ),
        "a twentieth more": sizes("OK", 20 * GIB, 21 * GIB),
        "and more": sizes("WARNING", 20 * GIB, 21 * GIB + 1),
        "the largest kind": sizes(
            "WARNING", 8 * GIB, 12 * GIB, 24 * GIB, 12 * GIB, remedy="CUDA_VISIBLE_DEVICES=1,3 "
        ),
        "a hidden one": one_of_eight(
            "OK", {"Name": "NVIDIA T400"}, "=3 GPUs of one kind: NVIDIA H200", torch={"devices": DEVICES[:3]},
            environ={"CUDA_VISIBLE_DEVICES": "0,1,2"},
        ),
        "a slice": says("OK", machine=EIGHT, torch={"devices": [SLICE]}),
        "torch sees none": one_of_eight("WARNING", L40S, torch={"devices": []}),
        "a name is not read": one_of_eight("UNKNOWN", {"Name": UNREAD}, NOT_NAMED, torch={"devices": []}),
        "a name is not read, without torch": one_of_eight(
            "UNKNOWN", {"Name": UNREAD}, NOT_NAMED, torch=Unreadable("no answer")
        ),
        "an unread size": sizes("OK", 20 * GIB, None, 20 * GIB),
        "unread sizes": sizes("OK", None, None),
        "one GPU": says("NOT_APPLICABLE", "=there is one GPU"),
        "nobody describes them": says("UNKNOWN", machine=EIGHT, **BLIND),
    },
    {
        f"two sizes: {pair}": sizes(
            "WARNING", *pair, message=("NVIDIA H200 (8.0 GiB)", "NVIDIA H200 (12.0 GiB)"),
            remedy="CUDA_VISIBLE_DEVICES=0 ",
        )
        for pair in [(8 * GIB, 12 * GIB), (12 * GIB, 8 * GIB)]
    },
)  # fmt: skip

DESKTOP = {"Name": "NVIDIA GeForce RTX 3090", "Brand": 15}


def memory(total):
    return {"MemoryInfo:33554472": {"total": total, "used": 0}}


def like(expected, changes, message="", remedy="", *, common=None, count=8, **more):
    """The first GPUs of the machine, with `changes` by index in what NVML and torch (`sms`) answer."""
    nvml = RecordedHost(EIGHT).nvml_answers
    devices = [device | (common or {}) | changes.get(index, {}) for index, device in enumerate(nvml["devices"])]
    torch = [
        {**seen, "multi_processor_count": device.pop("sms", 132), "name": device.get("Name", seen["name"])}
        for seen, device in zip(DEVICES, devices, strict=True)
    ]
    answers = {"nvml": {**nvml, "devices": devices[:count]}, "torch": {"devices": torch[:count]}}
    return says(expected, message, remedy, machine=EIGHT, **answers | more)


ODD = ["WARNING GPU 5"]
test_neighbours = table(
    "neighbours",
    {
        told: like(ODD, {5: change}, f"=unlike its neighbours: {told}", "^nvidia-smi -q -i 00000000:00:0B.0  # ")
        for told, change in {
            "multiprocessors 120 (theirs: 132)": {"sms": 120},
            "CUDA cores 15360 (theirs: 16896)": {"NumGpuCores": 15360},
            "memory 137.6 GiB (theirs: 140.4 GiB)": memory(TOTAL * 98 // 100),
            "memory 70.2 GiB (theirs: 140.4 GiB)": memory(TOTAL // 2),
            "VBIOS 96.00.30.00.01 (theirs: 96.00.DA.00.0C)": {"VbiosVersion": "96.00.30.00.01"},
            "GSP firmware 570.86.15 (theirs: 580.159.04)": {"GspFirmwareVersion": "570.86.15"},
            "GSP firmware off (theirs: 580.159.04)": {"GspFirmwareVersion": {"unreadable": NOT_SUPPORTED}},
            "highest clock (MHz) 1755 (theirs: 1980)": {"MaxClockInfo:1": 1755},
            "default power limit (W) 600 (theirs: 700)": {"PowerManagementDefaultLimit": 600_000},
            "PCIe generation 4 (theirs: 5)": {"MaxPcieLinkGeneration": 4},
            "PCIe lanes 8 (theirs: 16)": {"MaxPcieLinkWidth": 8},
            "multiprocessors 120 (theirs: 132), CUDA cores 15360 (theirs: 16896), PCIe lanes 8 (theirs: 16)": {
                "sms": 120, "NumGpuCores": 15360, "MaxPcieLinkWidth": 8
            },
        }.items()
    },
    {
        f"desktop cards differ: {change}": like(["OK"], {5: change}, common=DESKTOP)
        for change in (
            {"VbiosVersion": "94.02.42"}, {"MaxClockInfo:1": 2130}, {"PowerManagementDefaultLimit": 370_000},
            {"MaxPcieLinkWidth": 4},
        )
    },
    {
        f"in parts: {change}": like(["OK"], {5: change | {"NumGpuCores": 1}})
        for change in ({"MigMode": [1, 1]}, {"VirtualizationMode": 2})
    },
    {
        f"not told: {why}": like(["OK"], {5: {"VbiosVersion": {"unreadable": why}}}, "GSP firmware, highest clock")
        for why in (NOT_SUPPORTED, "NVML: Function Not Found", "NVML: Unknown Error")
    },
    {
        "all alike": like(["OK"], {}, "multiprocessors, CUDA cores, memory, GSP firmware, VBIOS, "),
        "several": like(["WARNING GPU 2", "WARNING GPU 7"], {2: {"sms": 120}, 7: {"MaxPcieLinkWidth": 8}}),
        "retired pages": like(["OK"], {5: memory(TOTAL - TOTAL // 200)}),
        "the lesser of two": like(["WARNING GPU 0"], {0: {"sms": 120}}, count=2),
        "the lesser, second": like(["WARNING GPU 1"], {1: {"sms": 120}}, count=2),
        "other firmware of two": like(
            ["WARNING GPU 0", "WARNING GPU 1"], {1: {"VbiosVersion": "96.00.30.00.01"}}, count=2
        ),
        "no majority": like(
            [f"WARNING GPU {index}" for index in range(4)], {index: {"sms": 120} for index in range(4)}
        ),
        "a desktop card with fewer multiprocessors": like(ODD, {5: {"sms": 80}}, common=DESKTOP),
        "two sizes of a desktop card": like(["OK"], {1: memory(TOTAL // 2)}, common=DESKTOP),
        "two sizes of two cards": like(["NOT_APPLICABLE"], {1: memory(TOTAL // 2)}, count=2),
        "another kind": like(
            ["OK"],
            {5: {"Name": "NVIDIA H100 80GB HBM3", "sms": 114, "MaxClockInfo:1": 1755, **memory(TOTAL // 2)}},
        ),
        "ECC takes memory": like(["OK"], {5: {"EccMode": [0, 0]} | memory(TOTAL * 16 // 15)}),
        "no multiprocessors": like(["UNKNOWN"], {5: {"NumGpuCores": UNREAD}}, torch={"devices": []}),
        "no memory": like(["UNKNOWN"], {5: {"MemoryInfo:33554472": UNREAD, "MemoryInfo": UNREAD}}),
        "one GPU": says("NOT_APPLICABLE"),
        "nobody describes them": says("UNKNOWN", machine=EIGHT, **BLIND),
    },
)  # fmt: skip
test_kinds_by_memory = table(
    "gpu_mix",
    {
        "half the memory is lost": like(["OK"], {5: memory(TOTAL // 2)}),
        "some memory is lost": like(["OK"], {5: memory(TOTAL * 98 // 100)}),
        "two sizes of a desktop card": like(["WARNING"], {1: memory(TOTAL // 2)}, common=DESKTOP),
        "two sizes of two cards": like(["WARNING"], {1: memory(TOTAL // 2)}, count=2),
    },
)

HEALTHY = (655, 660, 671, 662, 658, 664, 649, 667)
"""TFLOP/s of eight cards that differ by 3 %."""


def taken(rates, run=1, metric="matmul", **conditions):
    rows = [row("side_by_side", metric, rate, f"cuda:{number}", run=run) for number, rate in enumerate(rates)]
    return [replace(one, unit="GB/s" if metric == "bandwidth" else "TFLOP/s", conditions=conditions) for one in rows]


def with_one(rate, number=3):
    return (*HEALTHY[:number], rate, *HEALTHY[number + 1 :])


def throttled(run, clock, watts):
    rows = taken(with_one(560), run, sm_clock_mhz=1755.0, power_watts=698.0)
    rows[3] = replace(rows[3], conditions={"sm_clock_mhz": clock, "power_watts": watts, "gpu_processes": 2.0})
    return rows


def side(severity, *rows, message="", remedy="", others="OK", of=3):
    return says(severity, message, remedy, of=of, others=others, measured=[one for some in rows for one in some])


SLOW, SECOND = with_one(560), taken(with_one(560), 2)
test_slow_gpu = table(
    "slow_gpu",
    {
        "not measured at once": side("NOT_APPLICABLE", message="--device all", others="NOT_APPLICABLE"),
        "one GPU": says("NOT_APPLICABLE", "=there are fewer than 3 GPUs of its kind to compare"),
        "healthy": side(
            "OK", taken(HEALTHY), taken([4100 + rate for rate in HEALTHY], metric="bandwidth"), of=0,
            message="=steady matmul 657.3 TFLOP/s, 99% of the median; memory bandwidth 4772 GB/s, 100% of the median",
        ),
        "slow matmul": side("WARNING", taken(SLOW), SECOND),
        "slow memory": side("WARNING", taken(SLOW, 1, "bandwidth"), taken(SLOW, 2, "bandwidth")),
        "with clock and power": side(
            "WARNING", throttled(1, 1410.0, 500.0), throttled(2, 1405.0, 502.0), remedy="^nvidia-smi -i 0000",
            message="=steady matmul 15% and 15% below the median of 8 GPUs (562 to 661.3 TFLOP/s; 1405 to 1755 MHz, "
            "502 to 698 W, 2 processes on it)",
        ),
        "one run": side("OK", taken(SLOW)),
        "not confirmed": side(
            "OK", taken(SLOW), taken(HEALTHY, 2), message="steady matmul slow in one run and not in another"
        ),
        "not measured again": side(
            "UNKNOWN", taken(SLOW), [one for one in SECOND if one.device != "cuda:3"],
            message="^steady matmul 562 TFLOP/s, 85% of the median; slow in one run, and not measured",
        ),
        "another card in the second run": side("OK", taken(SLOW), taken(with_one(560, number=5), 2)),
        "not measured": side(
            "UNKNOWN", taken(HEALTHY[:7]), message="=it was not measured together with the others", of=7
        ),
        "two GPUs": says(
            [f"NOT_APPLICABLE GPU {index}" for index in (0, 1)] + [f"UNKNOWN GPU {index}" for index in range(2, 8)],
            ": with 2 GPUs there is no telling which is slow", machine=EIGHT,
            measured=taken((660, 400)) + taken((660, 400), 2),
        ),
    },
)  # fmt: skip

SCATTERED = (100, 104, 96, 103, 97, 105, 95)


@pytest.mark.parametrize(
    ("rates", "suspects"),
    [
        (SLOW, {"cuda:3"}),
        ([100] * 7 + [90.1], set()),  # as healthy cards differ
        ([100] * 7 + [89.9], {"cuda:7"}),
        ((*SCATTERED, 82), set()),  # 18 % below, and the others scatter by 4 %
        ((*SCATTERED, 60), {"cuda:7"}),
        (with_one(800), set()),
    ],
)
def test_a_suspect_calls_for_another_run(rates, suspects):
    assert slow_gpu.suspects(taken(rates)) == suspects

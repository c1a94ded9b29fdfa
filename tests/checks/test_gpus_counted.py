"""The GPUs that NVML lists, against those on the PCI bus and those that were expected or granted."""

from recorded import EIGHT, UNREAD, UNSUPPORTED, RecordedHost, facts_of, says, table

from gputune.checks import gpu_lost
from gputune.host import Unreadable

VISIBLE, GRANTED, BUS = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "/sys/bus/pci/devices"
UUIDS = [gpu.uuid for gpu in facts_of(EIGHT).gpus]
NO_NVML = Unreadable("NVML: Not Found")
POD, SLURM = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"SLURM_JOB_ID": "7"}
BARE, NO_DEVICES = {"/.dockerenv": None}, {"devices": []}
REST = RecordedHost().nvml_answers["devices"][0]
MEMORY = ("MemoryInfo", "MemoryInfo:33554472")


def of_eight(listed=range(8), seen=None, **overrides):
    host = RecordedHost(EIGHT)
    nvml = {**host.nvml_answers, "devices": [host.nvml_answers["devices"][index] for index in listed]}
    torch = {"devices": [host.torch["devices"][index] for index in (listed if seen is None else seen)]}
    return {"machine": EIGHT, "nvml": nvml, "torch": torch, **overrides}


NO_DRIVER = "PCI_CLASS=30200\nPCI_ID=10DE:2335\n"
LOST = ["NVML: GPU is lost", "NVML: GPU requires a reset", "NVML: Timeout"]


def lost(severity, listed=range(8), given=8, message="", remedy="", *, subject=..., **more):
    """NVML and torch list some of eight GPUs, and the container has the first `given` device files."""
    files = {f"/dev/nvidia{index}": None for index in range(given, 8)} | more.pop("files", {})
    return says(severity, message, remedy, subject=subject, **of_eight(listed, files=files), **more)


def all_calls(why):
    return {call: {"unreadable": why} for call in REST}


def silent(expected, answers, message="", remedy="", **more):
    """NVML's answers, by index, of GPUs that do not answer."""
    nvml = RecordedHost(EIGHT).nvml_answers
    devices = [device | answers.get(index, {}) for index, device in enumerate(nvml["devices"])]
    return says(expected, message, remedy, machine=EIGHT, nvml={**nvml, "devices": devices}, **more)


WITHOUT_2, BRING_BACK = [0, 1, 3, 4, 5, 6, 7], ("sudo dmesg | grep NVRM", "reboot")
PART = "=this container or job was given {} of the 8 GPUs on the PCI bus"
FIRST_TWO = [f"/dev/nvidia{index}" for index in range(2, 8)]
test_gpu_lost = table(
    "gpu_lost",
    {
        f"missing where all are meant: {value}, {files}": lost(
            "ERROR", WITHOUT_2, 8, "0000:00:08.0", BRING_BACK, subject="0000:00:08.0", environ={GRANTED: value},
            files=files,
        )
        for files in ({}, BARE)
        for value in (None, "", "all", "void", "none", "0,1", "0,1,2,3,4,5,6,7")
    },
    {
        f"{count} of four, {value}": lost(
            severity, range(count), 4, PART.format(4) if severity != "ERROR" else "^on the PCI bus, but not listed",
            environ={GRANTED: value},
        )
        for value in (None, "all", "0,1,2,3")
        for count, severity in [(5, "NOT_APPLICABLE"), (4, "NOT_APPLICABLE"), (3, "ERROR"), (0, "ERROR")]
    },
    {
        f"{count} of two by a cgroup, {files}": lost(
            severity, range(count), 8, PART.format(2) if count == 2 else "not listed", files=files, denied=FIRST_TWO
        )
        for files in ({}, BARE)
        for count, severity in [(2, "NOT_APPLICABLE"), (1, "ERROR")]
    },
    {
        "all": lost("OK", message="(8)"),
        "two": lost("ERROR", [0, 2, 3, 4, 5, 6], message="0000:00:07.0, 0000:00:0d.0"),
        "all are gone": lost("ERROR", [], message="0000:00:06.0", files=BARE),
        "one without an address": lost("UNKNOWN", gpu={"PciInfo": UNREAD}),
        "and another one is missing": lost("ERROR", range(7), gpu={"PciInfo": UNREAD}),
        "which one is not known": lost("ERROR", [0], 2, "not listed by NVML: 1 of 0000:00:07.0", subject=None),
        "on a host a device file excuses nothing": lost(
            "ERROR", range(7), 7, files=BARE, environ={GRANTED: None}, subject="0000:00:0d.0"
        ),
        "in a job it does": lost(
            "NOT_APPLICABLE", range(7), 7, files=BARE, environ={GRANTED: None, **SLURM}, subject=None
        ),
        "one call with an unknown error": lost("OK", gpu={"Temperature:0": UNREAD}, gpu_index=3),
        "held by no driver": lost(
            "WARNING", range(7), message="held by no driver", subject="0000:00:0d.0",
            files={**BARE, f"{BUS}/0000:00:0d.0/uevent": NO_DRIVER},
        ),
        "none is held": lost(
            "NOT_APPLICABLE", [], message=f"={gpu_lost.NONE}",
            files={**BARE, **{name: NO_DRIVER for name in RecordedHost(EIGHT).files if name.startswith(BUS)}},
        ),
        "no bus": lost(
            "UNKNOWN", message="shows no PCI bus",
            files=dict.fromkeys(name for name in RecordedHost(EIGHT).files if name.startswith(BUS)),
        ),
        "without its power cables": silent(
            ["ERROR GPU 3"], {3: all_calls("NVML: Insufficient External Power")}, "", "power cables"
        ),
        "two handles fail": silent(
            ["ERROR GPU 2", "ERROR GPU 5"], {index: all_calls("NVML: Unknown Error") for index in (2, 5)},
            "one of 0000:00:08.0, 0000:00:0b.0", f"={gpu_lost.BRING_BACK}",
        ),
        "another job's": silent(
            "NOT_APPLICABLE", {index: all_calls("NVML: Insufficient Permissions") for index in range(2, 8)},
            PART.format(2), denied=FIRST_TWO,
        ),
    },
    {
        f"{why}, {given} given": lost(
            "ERROR", given=given, message=f"=it no longer answers ({why}): 0000:00:09.0",
            remedy="sudo dmesg | grep NVRM",
            subject="GPU 3", gpu={"Temperature:0": {"unreadable": why}}, gpu_index=3,
        )
        for why in LOST
        for given in (8, 4)
    },
    {
        f"the handle fails: {why}": silent(
            ["ERROR GPU 5"], {5: all_calls(why)}, f"=it no longer answers ({why}): 0000:00:0b.0", remedy
        )
        for why, remedy in [
            (LOST[0], "sudo reboot"), (LOST[1], "-i 0000:00:0b.0 --gpu-reset"),
            (LOST[2], "-i 0000:00:0b.0 --gpu-reset"),
            ("NVML: Unknown Error", "-i 0000:00:0b.0 --gpu-reset"), ("NVML: Some New Error", "sudo reboot"),
        ]
    },
    {
        f"{cause}, and the others were not asked": silent(
            ["ERROR GPU 3", *(f"UNKNOWN GPU {index}" for index in range(4, 8))],
            {3: {"Temperature:0": Unreadable("NVML: nvmlDeviceGetTemperature of GPU 3 does not answer", cause)}}
            | {index: dict.fromkeys(REST, Unreadable("NVML: not asked", "not_asked")) for index in range(4, 8)},
            ("nvmlDeviceGetTemperature", "0000:00:09.0"), "sudo reboot",
        )
        for cause in ("no_answer", "killed", "exited")
    },
    {
        f"unknown errors of {' and '.join(calls)}": silent([expected], {5: dict.fromkeys(calls, UNREAD)})
        for expected, calls in [
            ("ERROR GPU 5", ["Temperature:0", "PowerUsage", "ComputeMode"]),
            ("ERROR GPU 5", ["UUID", "Name", "PciInfo"]),
            ("OK", ["GpuFabricInfoV"]), ("OK", ["RemappedRows", "MigMode"]),
        ]
    },
    {
        f"a driver without these calls: {why}": silent(
            "UNKNOWN",
            {5: {call: {"unreadable": why} for call in ("UUID", "Name", "PciInfo", *MEMORY)}},
        )
        for why in ("NVML: Not Supported", "NVML: Function Not Found")
    },
    {
        f"held by {driver}": lost(
            "OK", range(7), message="(7)", files={**BARE, f"{BUS}/0000:00:0d.0/uevent": f"DRIVER={driver}\n{NO_DRIVER}"}
        )
        for driver in ("vfio-pci", "nouveau")
    },
    {
        f"no address to compare: {overrides}": says("UNKNOWN", ("0000:00:06.0", why), **overrides)
        for overrides, why in [
            ({"nvml": NO_NVML}, "NVML, which could list it, does not answer"),
            ({"nvml": NO_NVML, "torch": NO_DEVICES}, "NVML, which could list it, does not answer"),
            ({"gpu": {"PciInfo": {"unreadable": "no"}}}, "listed without an address"),
        ]
    },
)  # fmt: skip

SEVEN, SIXTH, UNSET = [0, 1, 2, 3, 4, 5, 7], "0000:00:0c.0", {GRANTED: None}


def expected(severity, listed=range(8), message="", remedy="", *, seen=None, expect=None, files=None, **more):
    """Eight GPUs on the bus, of which NVML and torch list some; a GPU that is not listed has no device file either."""
    gone = {f"/dev/nvidia{index}": None for index in range(8) if index not in listed}
    machine = {**of_eight(listed, seen), **{name: more.pop(name) for name in ("nvml", "torch") if name in more}}
    return says(
        severity, message, remedy, files=gone | (files or {}), facts={"gpus_expected": expect}, **machine, **more
    )  # fmt: skip


GRANTS = {
    "all": {GRANTED: "all"},
    "eight numbers": {GRANTED: "0,1,2,3,4,5,6,7"},
    "eight UUIDs": {GRANTED: ",".join(UUIDS)},
    "names of CDI": {GRANTED: ",".join(f"nvidia.com/gpu={index}" for index in range(8))},
    "Slurm's list": {**UNSET, **SLURM, "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7"},
    "Slurm's range": {**UNSET, **SLURM, "SLURM_STEP_GPUS": "0-7"},
    "Slurm's count": {**UNSET, **SLURM, "SLURM_GPUS_ON_NODE": "8"},
    "a pod's UUIDs": {GRANTED: ",".join(UUIDS), **POD},
}
TWO = {
    "OK": {
        "by number": {GRANTED: "0,1"},
        "by UUID": {GRANTED: ",".join(UUIDS[:2])},
        "by Slurm": {GRANTED: "all", **SLURM, "SLURM_JOB_GPUS": "4,5"},
    },
    "NOT_APPLICABLE": {
        "in a pod whose image says all": {GRANTED: "all", **POD},
        "in a pod, by mounts": {GRANTED: "/var/run/nvidia-container-devices", **POD},
        "in a pod, by CDI": {GRANTED: "void", **POD},
        "as MIG slices": {GRANTED: "MIG-5a5a,MIG-6b6b,MIG-7c7c"},
        "nobody says": UNSET,
    },
}
DENIED = [f"/dev/nvidia{index}" for index in range(2, 8)]
BLIND_FILES = {"nvml": Unreadable("NVML: Driver Not Loaded", "driver_not_loaded")}
test_expected_gpus = table(
    "expected_gpus",
    {f"{grant}: all": expected("OK", environ=environ) for grant, environ in GRANTS.items()},
    {
        f"{grant}: seven": expected(
            "ERROR", SEVEN, SIXTH, "sudo dmesg | grep NVRM", subject=SIXTH, environ=environ
        )
        for grant, environ in GRANTS.items()
    },
    {
        f"{grant}: seven, and a device file": expected(
            "NOT_APPLICABLE", SEVEN, "see gpu_lost", environ=environ, files={"/dev/nvidia6": ""}
        )
        for grant, environ in GRANTS.items()
    },
    {f"two {how}": expected(severity, [0, 1], environ=one) for severity, ways in TWO.items() for how,
    one in ways.items()},
    {
        f"a task that is bound by {bound}": expected(
            "NOT_APPLICABLE", [3], environ={**UNSET, **SLURM, "SLURM_STEP_GPUS": "0-7", bound: "1"}
        )
        for bound in ("SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK")
    },
    {
        f"expects {number}": expected(severity, message=f"^--expect-gpus {number}, and there are 8 GPUs", expect=number)
        for number, severity in [(8, "OK"), (9, "ERROR"), (7, "WARNING"), (0, "WARNING")]
    },
    {
        f"no GPU, expects {number}": says(
            severity, "see gpu_absent" if number == 2 else "", machine="cpu-only", facts={"gpus_expected": number}
        )
        for number, severity in [(0, "OK"), (None, "NOT_APPLICABLE"), (2, "NOT_APPLICABLE")]
    },
    {
        f"{why} hides one": expected("OK", seen=SEVEN, **hides_it)
        for why, hides_it in {
            VISIBLE: {"environ": {VISIBLE: "0,1,2,3,4,5,7"}},
            "a compute mode": {"gpu": {"ComputeMode": 2}, "gpu_index": 6},
            "an unread compute mode": {"gpu": {"ComputeMode": UNSUPPORTED}, "gpu_index": 6},
            "MIG": {"gpu": {"MigMode": [1, 1]}, "gpu_index": 6},
            "gpu_lost": {"gpu": {"Temperature:0": {"unreadable": "NVML: GPU is lost"}}, "gpu_index": 6},
        }.items()
    },
    {
        "left the bus": expected(
            "ERROR", SEVEN, f"not listed: {UUIDS[6]}", subject=GRANTED, environ=GRANTS["eight UUIDs"],
            files={f"{BUS}/{SIXTH}/uevent": None},
        ),
        "which one is not known": expected(
            "ERROR", [0, 1], "not listed: 1 of 0000:00:08.0", subject="SLURM_JOB_GPUS",
            environ={**UNSET, **SLURM, "SLURM_JOB_GPUS": "0-2"},
        ),
        "a cgroup gave two": expected("OK", [0, 1], files=dict.fromkeys(DENIED, ""), denied=DENIED),
        "slices are GPUs to Slurm": expected(
            "NOT_APPLICABLE", [0], environ={**UNSET, **SLURM, "SLURM_JOB_GPUS": "0,1,2"}, gpu={"MigMode": [1, 1]}
        ),
        "Slurm granted 0": expected("NOT_APPLICABLE", environ={GRANTED: "all", **SLURM, "SLURM_GPUS_ON_NODE": "0"}),
        "Slurm granted nothing": expected(
            "NOT_APPLICABLE", environ={GRANTED: "all", **SLURM, "SLURM_GPUS_ON_NODE": ""}
        ),
        "torch sees fewer, of no number": expected("ERROR", seen=SEVEN, environ=UNSET),
        "fewer than expected": expected("ERROR", SEVEN, subject=SIXTH, expect=8, environ=UNSET),
        "hidden from who expects it": expected(
            "ERROR", remedy=f"=unset {VISIBLE}", subject=VISIBLE, seen=[0, 1], expect=8, environ={VISIBLE: "0,1"}
        ),
        "two left of two": expected("OK", seen=[0, 1], expect=2, environ={VISIBLE: "0,1"}),
        "nobody expects more": expected("OK", seen=[0, 1], environ={VISIBLE: "0,1"}),
        "torch sees one fewer": expected(["ERROR GPU 6", "OK"], message="torch sees 7, not GPU 6", seen=SEVEN),
        "torch sees fewer than named": expected(["ERROR GPU 3", "OK"], seen=[1], environ={VISIBLE: "1,3"}),
        "torch's count": expected("OK", **BLIND_FILES),
        "torch's lower count": expected("ERROR", seen=SEVEN, **BLIND_FILES),
        "device files alone": expected("UNKNOWN", torch=NO_DEVICES, **BLIND_FILES),
        "one device file fewer": expected("ERROR", SEVEN, torch=NO_DEVICES, **BLIND_FILES),
    },
)  # fmt: skip

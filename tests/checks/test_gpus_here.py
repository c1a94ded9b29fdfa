"""Whether a GPU that was asked for is here, visible and usable."""

import pytest
from recorded import EIGHT, UNREAD, UNSUPPORTED, RecordedHost, facts_of, says, table

from gputune import checks
from gputune.checks.cuda_visible_devices import hidden
from gputune.host import Unreadable

VISIBLE, GRANTED, BUS = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "/sys/bus/pci/devices"
UUIDS = [gpu.uuid for gpu in facts_of(EIGHT).gpus]
NO_NVML = Unreadable("NVML: Not Found")
BLIND = {"without NVML": {"nvml": NO_NVML}, "without a UUID": {"gpu": {"UUID": UNREAD}}}
POD, SLURM = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"SLURM_JOB_ID": "7"}
BARE, NO_DEVICES = {"/.dockerenv": None}, {"devices": []}


def visible(severity, value, message="", remedy="", *, machine=EIGHT, environ=None, **more):
    environ = {VISIBLE: value, **(environ or {})}
    subject = VISIBLE if severity == "WARNING" else None
    return says(severity, message, remedy, subject=subject, machine=machine, environ=environ, **more)


COMPUTES = {"gpu": {"ComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": None}]}, "gpu_index": 5}
JOB_OF_TWO = {"environ": {**SLURM, "SLURM_JOB_GPUS": "2-3"}}
SLICE = {**RecordedHost().torch["devices"][0], "uuid": "5a5a5a5a-0000-0000-0000-000000000000"}
ONLY = "nvidia-h200-x1"
test_cuda_visible_devices = table(
    "cuda_visible_devices",
    {
        f"{value!r} hides all": visible("WARNING", value, f"{value!r} hides every GPU", f"=unset {VISIBLE}")
        for value in ("", " ", "-1", "NoDevFiles")
    },
    {
        f"{value!r} is not taken whole": visible(
            "WARNING", value, f"{value!r}: {told} GPUs are visible", f"=export {VISIBLE}={left}"
        )
        for value, told, left in [
            ("0,8,1", "8 names no GPU here, so only 1 of 8", "0"),
            ("6,7,-1,0", "-1 names no GPU here, so only 2 of 8", "6,7"),
            ("1,,2", "an empty entry names no GPU here, so only 1 of 8", "1"),
            ("all", "all names no GPU here, so only 0 of 8", "0,1,2,3,4,5,6,7"),
            ("2,2", "2 names one GPU twice, so only 0 of 8", "0,1,2,3,4,5,6,7"),
            ("GPU-00000000", "GPU-00000000 names no GPU here, so only 0 of 8", "0,1,2,3,4,5,6,7"),
        ]
    },
    {
        f"{value!r} leaves {count}": visible(
            "OK", value, f"={VISIBLE}={value!r}: {count} of 8 GPUs are visible",
            torch={"devices": RecordedHost(EIGHT).torch["devices"][:count]},
        )
        for value, count in [
            ("0", 1), ("3,1", 2), ("0, 7", 2), ("0,", 1), ("0,1,2,3,4,5,6,7", 8), (UUIDS[5], 1),
            (f"{UUIDS[5]},{UUIDS[0][:12]}", 2),
        ]
    },
    {
        "not set": visible("OK", None),
        "capitals, which torch does not know": visible(
            "WARNING", f"GPU-{UUIDS[5][4:].upper()}", "names 1 of 8 GPUs, and torch.cuda.device_count() is 0",
            f"=export {VISIBLE}={UUIDS[5]}", torch=NO_DEVICES,
        ),
        "a slice": visible("OK", "MIG-5a5a5a5a-0000", machine=ONLY, torch={"devices": [SLICE]}),
        "a slice that torch does not see": visible("WARNING", "MIG-5a5a5a5a-0000", machine=ONLY, torch=NO_DEVICES),
        "nothing to hide": visible("NOT_APPLICABLE", "", machine="cpu-only"),
        "nothing to hide by -1": visible("NOT_APPLICABLE", "-1", machine="cpu-only"),
        "none to name": visible(
            "WARNING", "0", "'0' names a GPU, but there is none", f"^unset {VISIBLE}", machine="cpu-only"
        ),
        "a torch for AMD's": visible("NOT_APPLICABLE", "0", machine="cpu-only", torch={"hip": "6.4"}),
    },
    {
        f"{why}: torch sees one": visible("OK", "0", f"={VISIBLE}='0': torch sees 1", machine=ONLY, **blind)
        for why, blind in BLIND.items()
    },
    {
        f"{why}: torch sees none": visible(
            "WARNING", "7", f"={VISIBLE}='7': torch sees no GPU", f"=unset {VISIBLE}", machine=ONLY, torch=NO_DEVICES,
            **blind,
        )
        for why, blind in BLIND.items()
    },
    {
        f"{why}: torch does not tell": visible(
            "UNKNOWN", "0", "neither NVML nor torch says", machine=ONLY, torch=Unreadable("no answer"), **blind
        )
        for why, blind in BLIND.items()
    },
    {
        f"the remedy for {value!r} takes no GPU of others: {left}": visible(
            "WARNING", value, "", f"^export {VISIBLE}={left}", **used
        )
        for value in ("", "all")
        for used, left in [(COMPUTES, "0,1,2,3,4,6,7"), (JOB_OF_TWO, "2,3")]
    },
    {
        f"only commas separate: {value!r}, {why}": visible(
            "WARNING", value, f"CUDA ignores what follows the number in {ignored!r}", f"=export {VISIBLE}={meant}",
            **blind,
        )
        for value, ignored, meant in [
            ("0;1", "0;1", "0,1"), ("0 1", "0 1", "0,1"), ("0:1", "0:1", "0,1"), ("0,1;2", "1;2", "0,1,2"),
            ("5;99", "5;99", "5"),
        ]
        for why, blind in {"as it is": {}, **BLIND}.items()
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "none_left"),
    [
        (None, False), ("0,99", False), ("GPU-f5f3a5e9", False), ("MIG-5a5a5a5a", False),
        ("", True), (" ", True), ("NoDevFiles", True), ("99,0", True), ("0,0", True),
    ],
)  # fmt: skip
def test_hidden_means_that_no_gpu_is_left(value, none_left):
    assert hidden(facts_of(environ={VISIBLE: value})) is none_left


@pytest.mark.parametrize(("value", "none_left"), [("99", False), ("-1", True)])
def test_what_a_number_leaves_is_not_known_without_nvml(value, none_left):
    assert hidden(facts_of(nvml=NO_NVML, environ={VISIBLE: value})) is none_left


def absent(severity, message="", remedy="", machine="cpu-only", **more):
    return says(severity, message, remedy, machine=machine, **more)


def failing(words):
    return {"devices": None, "gaps": {"devices": f"RuntimeError: {words}"}}


def hides(value):
    return f"=NVML lists 1 GPU; {VISIBLE}={value!r} hides them from torch"


REQUIRED = {"gpu_required": True}
STUB, COMPAT = (
    "Error 34: CUDA driver is a stub library",
    "Error 804: forward compatibility was attempted on non supported HW",
)
COMBINATION = "Error 803: system has unsupported display driver / cuda driver combination"
UNKNOWN = "CUDA unknown error - this may be due to an incorrectly set up environment"
FAILURE = "RuntimeError: CUDA unknown error"
STUBS, COMPATS, PATH = "/usr/local/cuda/lib64/stubs", "/usr/local/cuda/compat", "LD_LIBRARY_PATH"
REASON = "^/opt/torch/.venv/bin/python3 -c 'import torch; torch.cuda.init()'"
FILES = {"/dev/nvidia0": "", "/dev/nvidia1": ""}
REVOKED = {"files": {**FILES, "/.dockerenv": ""}, "denied": [*FILES]}
FAILED = Unreadable("NVML: Unknown Error", "unknown_error")
ORIN = {"/proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0"}
XAVIER = {"/proc/device-tree/model": "NVIDIA Jetson Xavier NX Developer Kit\0"}
DESKTOP = {"cuda": "12.6", "devices": [], "arch_list": ["sm_80", "sm_90", "compute_90"]}
FOR_ORIN = {**DESKTOP, "arch_list": ["sm_87"]}
test_gpu_absent = table(
    "gpu_absent",
    {
        f"asked for: {sign}": absent("ERROR", sign, "--gpus", **asked)
        for sign, asked in {
            f"{GRANTED}=all": {"environ": {GRANTED: "all"}},
            f"{GRANTED}=0": {"environ": {GRANTED: "0"}},
            "/dev/nvidia0": {"files": {"/dev/nvidia0": ""}},
            "slurm granted GPU 0": {"environ": {**SLURM, "SLURM_STEP_GPUS": "0"}},
        }.items()
    },
    {
        f"required: {laptop}": absent("ERROR", "(--require-gpu)", facts=REQUIRED, **laptop)
        for laptop in ({}, {"files": {"/dev/dxg": ""}}, {"environ": {GRANTED: "void"}})
    },
    {
        f"not asked for: {value!r}": absent("NOT_APPLICABLE", "^no GPU was requested", environ={GRANTED: value})
        for value in ("", "none", "void")
    },
    {
        f"hidden by {value!r}, {required}, {torch}": absent(
            "ERROR" if required else "NOT_APPLICABLE", hides(value), f"=unset {VISIBLE}" if required else "=", ONLY,
            environ={VISIBLE: value}, torch=torch, facts={"gpu_required": required},
        )
        for value in ("", "-1", "99", "0,0")
        for torch in (NO_DEVICES, {"devices": None, "gaps": {"devices": "no answer"}})
        for required in (False, True)
    },
    {
        "required and here": says("OK", facts=REQUIRED),
        "hidden and not listed": absent(
            "ERROR", f"=a GPU was requested (/dev/nvidia0), but {VISIBLE} hides it", f"=unset {VISIBLE}",
            files={"/dev/nvidia0": ""}, environ={VISIBLE: ""},
        ),
        "0 leaves one": says("ERROR", environ={VISIBLE: "0"}, torch=NO_DEVICES),
        "0,99 leaves one": says("ERROR", environ={VISIBLE: "0,99"}, torch=NO_DEVICES),
        "nothing is hidden": absent("NOT_APPLICABLE", environ={VISIBLE: ""}),
        "not seen by torch": says(
            "ERROR", "^NVML lists 1 GPU, but torch can use none", (
                "^docker run", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            ),
            torch=NO_DEVICES,
        ),
        "not seen on a host": says(
            "ERROR", "", "=sudo nvidia-modprobe -u -c=0  # as root; changes the node; makes the device files anew",
            torch=NO_DEVICES, files=BARE,
        ),
        "torch fails": absent(
            "ERROR", f"^NVML lists 8 GPUs, but torch can use none ({FAILURE})", "", EIGHT, torch=failing(
                "CUDA unknown error"
            )
        ),
        "torch waits": absent(
            "NOT_APPLICABLE", "Fabric Manager", "", EIGHT, torch=failing("Error 802: system not yet initialized")
        ),
        "no torch": says("OK", "=NVML lists 1 GPU", torch=Unreadable("no answer")),
        "no CUDA": says("OK", "=NVML lists 1 GPU", torch={"cuda": None, "devices": None}),
        "WSL's device": absent("UNKNOWN", "/dev/dxg", files={"/dev/dxg": ""}),
        "some hidden on purpose": says(
            "OK", "=torch sees 1 GPU", machine=EIGHT, environ={VISIBLE: "3"},
            torch={"devices": RecordedHost(EIGHT).torch["devices"][3:4]},
        ),
        "a torch for AMD's": absent(
            "NOT_APPLICABLE", "AMD", torch={"hip": "6.4"}, environ={**SLURM, "SLURM_JOB_GPUS": "0,1"}
        ),
        "too old a driver": says(
            "NOT_APPLICABLE", "driver supports CUDA 13.0, torch needs 14.0", torch={"devices": [], "cuda": "14.0"}
        ),
        "another module": says(
            "NOT_APPLICABLE", "see driver_mismatch", torch=failing(COMBINATION),
            files={"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.1  Mon\n"},
        ),
        "expected": absent("ERROR", "(--expect-gpus 8)", facts={"gpus_expected": 8}),
        "none expected": absent("NOT_APPLICABLE", facts={"gpus_expected": 0}),
        "a job of two may open none": absent(
            "ERROR", "slurm granted 2 GPUs (0,1)", files=FILES, denied=[*FILES], nvml=NO_DEVICES,
            environ={**SLURM, "SLURM_JOB_GPUS": "0,1"},
        ),
        "a board whose torch sees none": absent(
            "ERROR", "cannot use the GPU of NVIDIA Jetson AGX Orin", files=ORIN, torch=FOR_ORIN
        ),
        "a board without torch": absent("NOT_APPLICABLE", files=ORIN, torch=Unreadable("no torch")),
    },
    {
        f"{words[:9]} {path}": says("ERROR", words, remedy, torch=failing(words), environ={PATH: path})
        for words, path, remedy in [
            (STUB, f"{STUBS}:/opt/lib", f"^export {PATH}=/opt/lib"), (STUB, STUBS, f"^unset {PATH}"),
            (STUB, None, "^ldconfig -p | grep libcuda.so.1"),
            (COMPAT, f"{COMPATS}:/opt/lib", f"^export {PATH}=/opt/lib"),
            (COMPAT, None, "^sudo apt-get remove 'cuda-compat-*' && sudo ldconfig"),
            (COMBINATION, None, "^docker restart CONTAINER"),
            (UNKNOWN, None, "^sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
            ("Error 100: no CUDA-capable device is detected", None, "^docker run --gpus device=0 -e NVIDIA_DRIVER_CAP"),
            ("libcuda.so.1: cannot open shared object file", None, "^docker run --gpus device=0 -e NVIDIA_DRIVER_CAP"),
            ("something new", None, REASON),
        ]
    },
    {
        f"docker gives what was given: {value}": says("ERROR", "", option, torch=NO_DEVICES, environ={GRANTED: value})
        for value, option in [
            ("all", "--gpus all "), ("2", "--gpus device=2 "), ("0,1", "--gpus '\"device=0,1\"' "), (None, "--gpus 1 ")
        ]
    },
    {
        f"a job of {count}": absent(
            "ERROR", f"granted {count} GPU", f"^srun --gpus={count} COMMAND",
            environ={**SLURM, "SLURM_GPUS_ON_NODE": count},
        )
        for count in ("8", "1")
    },
    {
        "a pod of four": absent(
            "ERROR", "", "^resources: {limits: {nvidia.com/gpu: 4}}", environ=POD, facts={"gpus_expected": 4}
        )
    },
    {
        f"taken away from {environ}, {nvml}": absent(
            "ERROR", ("may open none of the GPUs' device files (/dev/nvidia0 to /dev/nvidia1)", told),
            (remedy, "create-dev-char-symlinks"), subject="/dev/nvidia0", nvml=nvml, environ=environ, **REVOKED,
        )
        for nvml, told in [(FAILED, "(NVML: Unknown Error)"), (NO_DEVICES, "")]
        for environ, remedy in [
            ({GRANTED: "all"}, "docker restart CONTAINER  # on the host"),
            ({}, "docker restart CONTAINER  # on the host"),
            ({**POD, GRANTED: "void"}, '^kubectl delete pod "$HOSTNAME"'),
        ]
    },
    {
        f"granted none: {environ}, {kind}": absent(
            "NOT_APPLICABLE", files={**FILES, **kind}, denied=[*FILES], nvml=NO_DEVICES, environ={**SLURM, **environ}
        )
        for environ in ({}, {"SLURM_GPUS_ON_NODE": "0", GRANTED: "all"})
        for kind in ({}, {"/.dockerenv": ""})
    },
    {
        f"told by {other}: {cause}": absent(
            "NOT_APPLICABLE", f"see {other}", files=FILES, nvml=Unreadable("nvmlInit", cause)
        )
        for cause, other in {
            "no_answer": "nvml_missing", "killed": "nvml_missing", "version_mismatch": "driver_mismatch"
        }.items()
    },
    {
        f"another machine's torch on a board: {told} {torch}": absent(
            "ERROR", told, "the wheel that NVIDIA builds for its JetPack", files=files, torch=torch
        )
        for files, torch, told in [
            (ORIN, {"cuda": None, "devices": None}, "built without CUDA"), (ORIN, DESKTOP, "needs sm_87"),
            (XAVIER, DESKTOP, "needs sm_72"), (XAVIER, FOR_ORIN, "needs sm_72"),
            ({"/dev/nvmap": ""}, DESKTOP, "sm_72 or sm_87"),
        ]
    },
)  # fmt: skip

INTEGRATED = {
    "name": "Orin",
    "uuid": None,
    "major": 8,
    "minor": 7,
    "total_memory": 65 << 30,
    "multi_processor_count": 16,
}
NO_PCI = {name: None for name in RecordedHost().files if name.startswith(BUS)}
PARTIAL = {"Name": "Orin (nvgpu)", "UUID": "GPU-5a5a5a5a", "CudaComputeCapability": [8, 7]}
REST = dict.fromkeys(RecordedHost().nvml_answers["devices"][0], UNSUPPORTED)


@pytest.mark.parametrize(
    "nvml",
    [
        Unreadable("NVML: NVML Shared Library Not Found", "library_not_found"),
        {"DriverVersion": "540.4.0", "CudaDriverVersion_v2": 12060, "devices": [REST | PARTIAL]},
    ],
    ids=["without NVML", "with part of NVML"],
)
def test_a_jetson_board_that_works_is_no_complaint(nvml):
    environ = {GRANTED: None, "NVIDIA_DRIVER_CAPABILITIES": None}
    files = {**NO_PCI, **ORIN, **BARE, "/dev/nvidia0": None, "/proc/driver/nvidia/version": None}
    facts = facts_of(environ=environ, files=files, nvml=nvml, torch={**FOR_ORIN, "devices": [INTEGRATED]})
    assert not [one for one in checks.run(facts) if one.severity in ("WARNING", "ERROR")]

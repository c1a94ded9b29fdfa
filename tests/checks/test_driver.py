"""The driver, NVML and the device files: whether they are there, fit one another and may be used."""

from recorded import EIGHT, UNREAD, RecordedHost, says, table

from gputune.host import Unreadable

VERSION, BUS = "/proc/driver/nvidia/version", "/sys/bus/pci/devices"
CARD = f"{BUS}/0000:00:06.0/uevent"
POD, SLURM = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"SLURM_JOB_ID": "1"}
BARE = {"/.dockerenv": None}


def cuda(severity, driver="13.0", torch="13.0", message="", remedy="", *, seen=0, gpu=None):
    facts = {"driver.cuda": driver, "libraries.cuda": torch, "libraries.device_count": seen}
    return says(severity, message, remedy, gpu=gpu or {}, facts=facts)


def with_driver(answers):
    return {**RecordedHost().nvml_answers, **answers}


test_driver_cuda = table(
    "driver_cuda",
    {
        f"{driver} for {torch}": cuda(
            "ERROR", driver, torch, ("^driver 580.159.04", driver, torch),
            (
                "^/opt/torch/.venv/bin/python3 -m pip install --force-reinstall torch --index-url "
                f"https://download.pytorch.org/whl/{index}  # or update the driver to one for CUDA {torch[:2]} ",
                f"sudo apt-get install cuda-compat-{torch.replace('.', '-')} && ",
                f"LD_LIBRARY_PATH=/usr/local/cuda-{torch}/compat:$LD_LIBRARY_PATH, from NVIDIA's repository",
            ),
        )
        for driver, torch, index in [
            ("12.8", "13.0", "cu128"), ("12.9", "13.2", "cu128"), ("11.8", "12.1", "cu118"), ("12.0", "13.0", "cu118"),
            ("11.2", "12.1", "cu118"),
        ]
    },
    {
        f"{driver} for {torch}": cuda(
            "OK", driver, torch, f"=driver 580.159.04 supports CUDA {driver}, torch was built with {torch}"
        )
        for driver, torch in [("13.0", "13.0"), ("13.1", "13.0"), ("13.0", "12.8"), ("12.10", "12.9")]
    },
    {
        f"no package lifts brand {brand}": cuda(
            "ERROR", "12.8", "13.0", "", "for CUDA 13 (https://www.nvidia.com/drivers)", gpu={"Brand": brand}
        )
        for brand in (5, 6, 15, 16)
    },
    {
        f"one may lift brand {brand}": cuda(
            "ERROR", "12.8", "13.0", "", "apt-get install cuda-compat-13-0", gpu={"Brand": brand}
        )
        for brand in (1, 2, 12, 13, 14, {"unreadable": "NVML: Not Supported"})
    },
    {
        "no torch for the driver": cuda("ERROR", "10.2", "12.1", "", "^update the driver to one for CUDA 12"),
        "no kernels for the GPU": cuda(
            "ERROR", "12.9", "13.0", "", "whl/cu126 ", gpu={"CudaComputeCapability": [7, 0]}
        ),
        "a package that works": cuda("OK", "12.8", "13.0", ("compatibility package", "PTX may fail"), seen=1),
        "a lower minor version": cuda("OK", "13.0", "13.2", ("minor-version compatible", "PTX may fail")),
        "no CUDA": cuda("NOT_APPLICABLE", torch=None),
        "no NVML": says("UNKNOWN", "CUDA version that the driver supports", nvml=Unreadable("NVML: Not Found")),
        "an unread CUDA": says("UNKNOWN", "NVML: Unknown Error", nvml=with_driver({"CudaDriverVersion_v2": UNREAD})),
        "an unread driver": says(
            "OK", "=driver ? supports CUDA 13.0, torch was built with 13.0", facts={"driver.version": None}
        ),
        "no torch": says("UNKNOWN", "no answer", torch=Unreadable("no answer")),
    },
    {f"the driver's CUDA is {one!r}": cuda("UNKNOWN", driver=one) for one in ("", "unknown")},
    {f"torch's CUDA is {one!r}": cuda("UNKNOWN", torch=one) for one in ("", "unknown")},
)  # fmt: skip


def module(version):
    return {VERSION: f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (builder)\n"}


REFUSED = Unreadable("NVML: Driver/library version mismatch", "version_mismatch")
REBOOT = "^sudo reboot  # on the host, as root; ends its jobs; "
NEWER = module("590.44.01")
test_driver_mismatch = table(
    "driver_mismatch",
    {
        "one version": says("OK", "=kernel module and libraries are both 580.159.04"),
        "NVML refuses the module": says(
            "ERROR", ("570.86.10", "Driver/library version mismatch"), REBOOT, nvml=REFUSED, files=module("570.86.10")
        ),
        "NVML refuses an unknown module": says(
            "ERROR", "(version unknown) and the driver's libraries are of different versions", nvml=REFUSED,
            files={VERSION: None},
        ),
        "NVML refuses, and there is no device file": says("ERROR", machine="cpu-only", nvml=REFUSED),
        "an unread library": says("UNKNOWN", "Unknown Error", nvml=with_driver({"DriverVersion": UNREAD})),
        "WSL": says("NOT_APPLICABLE", "WSL", files={VERSION: None, "/dev/nvidia0": None, "/dev/dxg": ""}),
        "an unknown module": says("UNKNOWN", "^libraries 580.159.04", files={VERSION: None}),
    },
    {
        f"the module is {version}": says(
            "ERROR", (f"module is {version},", "580.159.04"), "reboot", files=module(version)
        )
        for version in ("570.86.10", "580.159.03", "580.159")
    },
    {
        reason: says("UNKNOWN", reason, nvml=Unreadable(reason))
        for reason in ("nvidia-ml-py is not installed", "NVML: NVML Shared Library Not Found")
    },
    {
        f"libraries older than the module: {remedy}": says("ERROR", "", remedy, files=NEWER | files, environ=environ)
        for environ, files, remedy in [
            ({}, {}, "^docker restart CONTAINER  # on the host; ends its jobs; "),
            (POD, {}, '^kubectl delete pod "$HOSTNAME"  # ends its jobs; '),
            ({}, BARE, "^ldconfig -p | grep -E 'lib(cuda|nvidia-ml).so.1'  # lists the copies"),
        ]
    },
)  # fmt: skip


def uevent(driver, kind="30200", maker="10DE"):
    return (f"DRIVER={driver}\n" if driver else "") + f"PCI_CLASS={kind}\nPCI_ID={maker}:2335\n"


def card(severity, text, message="", remedy="", *, files=None, subject=..., **more):
    files = {CARD: text, **(files or {})}
    return says(severity, message, remedy, subject=subject, machine="cpu-only", files=files, **more)


INSTALL = ("sudo ubuntu-drivers install", "sudo apt install nvidia-driver")
BLACKLIST = "^printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/"
MODPROBE = ("^sudo modprobe nvidia  # on the host, as root; ", "Secure Boot")
OTHER_CARD = f"{BUS}/0000:3b:00.0/uevent"
test_driver_missing = table(
    "driver_missing",
    {
        f"{driver} holds a {kind}": card(
            "WARNING", uevent(driver, kind), told, (*INSTALL, *remedy), subject="0000:00:06.0"
        )
        for driver, told, remedy in [
            ("nouveau", "0000:00:06.0 (nouveau)", (BLACKLIST,)), (None, "0000:00:06.0 (no driver)", MODPROBE)
        ]
        for kind in ("30000", "30200")
    },
    {
        f"wanted: {wanted}": card(severity, uevent(None), environ={"NVIDIA_VISIBLE_DEVICES": wanted})
        for wanted, severity in [("all", "ERROR"), ("0", "ERROR"), ("void", "WARNING")]
    },
    {
        f"nothing that needs it: {text!r}": card("NOT_APPLICABLE", text)
        for text in (
            uevent("vfio-pci"), uevent("pci-stub"), uevent("pciback"), uevent("snd_hda_intel", "40300"),
            uevent("mlx5_core", "20700"), uevent(None, maker="1002"),
        )
    },
    {
        "loaded": says("OK", "=NVIDIA's kernel module 580.159.04 is loaded"),
        "a device file is left": card("ERROR", uevent(None), files={"/dev/nvidia0": ""}),
        "a GPU is required": card("ERROR", uevent("nouveau"), facts={"gpu_required": True}),
        "every GPU is named": card(
            "WARNING", uevent("nouveau"), "0000:00:06.0 (nouveau), 0000:3b:00.0 (no driver)",
            files={OTHER_CARD: uevent(None)},
        ),
        "a GPU that is given away is not": card(
            "WARNING", uevent("vfio-pci"), "=NVIDIA's driver is not loaded for the GPU at 0000:3b:00.0 (no driver)",
            files={OTHER_CARD: uevent(None)}, subject="0000:3b:00.0",
        ),
        "WSL": says(
            "NOT_APPLICABLE", "WSL", files={VERSION: None, CARD: None, "/dev/nvidia0": None, "/dev/dxg": ""}
        ),
        "no bus": says("UNKNOWN", "shows no PCI bus", machine="cpu-only", files={f"{BUS}/0000:00:00.0/uevent": None}),
        "garbage": card("UNKNOWN", uevent(None, "garbage"), "garbage"),
        "a driver of unknown version": card(
            "UNKNOWN", uevent("nvidia"), "version could not be read", files={OTHER_CARD: uevent(None)}
        ),
        "no GPU": says("NOT_APPLICABLE", "^there is no NVIDIA GPU on the PCI bus", machine="cpu-only"),
    },
)  # fmt: skip

CONTROL, MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
BOTH = {CONTROL: "", MEMORY: ""}
NO_DEVICES = {"devices": [], "gaps": {}}
FAILED = {"devices": None, "gaps": {"devices": "RuntimeError: Error 999: unknown error"}}
WAITS = {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}
NO_TORCH = Unreadable("not installed")


def nodes(severity, subject, files=None, message="", remedy="", **more):
    """Device files on a host, outside of containers."""
    return says(severity, message, remedy, subject=subject, files=BARE | (files or {}), **more)


def broken(cause):
    return Unreadable("NVML", cause)


test_device_nodes = table(
    "device_nodes",
    {
        f"{why}, {torch}": nodes("ERROR", MEMORY, torch=torch, **fault)
        for torch in (NO_DEVICES, FAILED)
        for why, fault in {"missing": {"files": {CONTROL: ""}}, "denied": {"files": BOTH, "denied": [MEMORY]}}.items()
    },
    {
        f"NVML, {why}, {cause}": nodes("ERROR", CONTROL, nvml=broken(cause), torch=FAILED, **fault)
        for cause in ("unknown_error", "no_permission", "driver_not_loaded")
        for why, fault in {"missing": {"files": {MEMORY: ""}}, "denied": {"files": BOTH, "denied": [CONTROL]}}.items()
    },
    {
        remedy: nodes("ERROR", MEMORY, remedy=remedy, torch=NO_DEVICES, **fault)
        for remedy, fault in {
            "sudo nvidia-modprobe -u -c=0  # ": {"files": {CONTROL: ""}},
            "sudo chmod 0666 /dev/nvidia-uvm  # ": {"files": BOTH, "denied": [MEMORY]},
            "^srun --gpus=1 COMMAND  # ": {"files": BOTH, "denied": [MEMORY], "environ": SLURM},
            "start the container again": {"files": {CONTROL: "", "/.dockerenv": ""}},
            "apptainer exec --nv IMAGE  # ": {"files": {CONTROL: ""}, "environ": {"APPTAINER_CONTAINER": "/a.sif"}},
        }.items()
    },
    {
        "no file of a GPU may be opened either": says(
            "NOT_APPLICABLE", "see gpu_absent", files=BOTH, denied=[CONTROL, MEMORY, "/dev/nvidia0"],
            nvml=Unreadable("NVML: Unknown Error", "unknown_error"), torch=NO_DEVICES,
        ),
        "CUDA was not tried": nodes("WARNING", MEMORY, BOTH, denied=[MEMORY], torch=NO_TORCH),
        "made by the first program": nodes("OK", None, {CONTROL: ""}, torch=NO_TORCH),
        "not made by a torch without CUDA": nodes("OK", None, {CONTROL: ""}, torch={"cuda": None, "devices": None}),
        "all works": nodes("OK", None),
        "all is there": nodes("OK", None, BOTH),
        "CUDA waits for Fabric Manager": nodes("OK", None, {CONTROL: ""}, torch=WAITS),
    },
    {
        f"listed nowhere, {torch}": nodes("OK", None, torch=torch)
        for torch in (NO_DEVICES, FAILED, Unreadable("no answer"))
    },
    {
        f"NVML fails by {cause}": nodes("NOT_APPLICABLE", None, nvml=broken(cause), torch=NO_DEVICES)
        for cause in ("version_mismatch", "not_installed", "library_not_found", None)
    },
    {
        why: nodes("NOT_APPLICABLE", None, message=why, torch=NO_DEVICES, **elsewhere)
        for why, elsewhere in {
            "^WSL has /dev/dxg": {"files": {"/dev/dxg": "", "/dev/nvidia0": None}},
            "^an embedded GPU": {"gpu": {"Name": "Orin (nvgpu)"}},
            "hides every GPU": {"environ": {"CUDA_VISIBLE_DEVICES": ""}},
            "driver is not loaded": {"nvml": broken("driver_not_loaded"), "files": {VERSION: None}},
            "^no GPU was requested": {
                "nvml": broken("driver_not_loaded"), "files": {"/dev/nvidia0": None},
                "environ": {"NVIDIA_VISIBLE_DEVICES": None},
            },
        }.items()
    },
)  # fmt: skip

ABSENT = Unreadable("NVML: Shared Library Not Found", "library_not_found")
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
UTILITY = f"{CAPABILITIES}=compute,utility"
UNGRANTED = {CAPABILITIES: None}


class Counting:
    def __init__(self, count, version="580.159.04"):
        self._count, self._version = count, version

    def system(self, name):
        return _given(self._version if name == "DriverVersion" else 13000)

    def count(self):
        return _given(self._count)


def _given(answer):
    if isinstance(answer, Unreadable):
        raise answer
    return answer


HUNG = Unreadable("NVML: nvmlDeviceGetCount does not answer within 5 s", "no_answer")
test_nvml_missing = table(
    "nvml_missing",
    {
        "torch sees the GPU": says("WARNING", "Shared Library Not Found", nvml=ABSENT),
        "only torch shows it": says(
            "WARNING", ("torch's list of GPUs", "Shared Library Not Found"), nvml=ABSENT, files={"/dev/nvidia0": None}
        ),
        "torch sees none": says("ERROR", "/dev/nvidia0", nvml=ABSENT, torch={"devices": []}),
        "no binding": says(
            "WARNING", "", "='/opt/own tool/bin/python' -m pip install nvidia-ml-py",
            nvml=Unreadable("nvidia-ml-py is not installed: No module", "not_installed"),
            own_python="/opt/own tool/bin/python",
        ),
        "a container that does not say": says("WARNING", "", UTILITY, nvml=ABSENT, environ=UNGRANTED),
        "a list of GPUs that never comes": says("ERROR", nvml=Counting(HUNG)),
        "one GPU that hangs": says(
            "UNKNOWN", "within 5 s", gpu={"Temperature:0": HUNG}
        ),
        "another version": says("NOT_APPLICABLE", "another version", nvml=REFUSED, torch={"devices": []}),
        "it lists nothing": says(
            "UNKNOWN", "Unknown Error",
            nvml=Counting(Unreadable("NVML: Unknown Error"), Unreadable("NVML: Unknown Error")),
        ),
    },
    {
        f"started with {told}": says(
            "WARNING", "", (UTILITY, f"it was started with {told}"), nvml=ABSENT, environ={CAPABILITIES: granted}
        )
        for granted, told in [("compute", "compute"), ("compute,graphics", "compute,graphics"), ("", "none")]
    },
    {
        f"granted {granted}": says(
            "WARNING", "",
            ("^ldconfig -p | grep libnvidia-ml.so.1  # on the host; ", "sudo apt-get install libnvidia-compute-580"),
            nvml=ABSENT, environ={CAPABILITIES: granted},
        )
        for granted in ("all", "compute,utility")
    },
    {
        remedy: says("WARNING", "", remedy, nvml=ABSENT, environ=UNGRANTED | environ, files=BARE | files)
        for remedy, environ, files in [
            ("libnvidia-compute-580  # as root; changes the node; on Debian: libnvidia-ml1; ", {}, {}),
            ("^install the driver's libnvidia-ml.so.1", {}, {VERSION: None}),
            ("^apptainer exec --nv IMAGE  # ", {"APPTAINER_CONTAINER": "x.sif"}, {}),
            (f'^env: [{{name: {CAPABILITIES}, value: "compute,utility"}}]  # ', POD, {}),
        ]
    },
    {
        f"{cause}, {severity}": says(
            severity, "NVML: it fails", remedy, nvml=Unreadable("NVML: it fails", cause), torch=torch
        )
        for cause, remedy in {
            "driver_not_loaded": "^sudo modprobe nvidia  # on the host, as root; ",
            "gpu_lost": REBOOT,
            "needs_reset": REBOOT,
            "timeout": REBOOT,
            "unknown_error": "^docker restart CONTAINER  # on the host; ends its jobs; ",
            "no_permission": "^ls -l /dev/nvidia*  # ",
            None: "^sudo dmesg | grep -iE 'nvrm|xid'  # on the host, as root; ",
        }.items()
        for torch, severity in [({}, "WARNING"), ({"devices": []}, "ERROR")]
    },
    {
        f"{cause} on {machine}": says(
            "ERROR", "nvmlInit does not answer within 5 s", "^sudo reboot  # ", machine=machine,
            nvml=Unreadable("NVML: nvmlInit does not answer within 5 s", cause),
        )
        for cause in ("no_answer", "killed", "exited")
        for machine in ("nvidia-h200-x1", EIGHT)
    },
    {
        f"a list that cannot be: {answer}": says("ERROR", "cannot list the GPUs", "^sudo dmesg", nvml=Counting(answer))
        for answer in (
            Unreadable("NVML: Unknown Error", "unknown_error"), Unreadable("NVML: Timeout", "timeout"), 2**32 - 1, 257
        )
    },
)  # fmt: skip

VARIABLE = "NVIDIA_VISIBLE_DEVICES"


def host(*drivers):
    """Files of a host with a GPU for each of these kernel drivers."""
    return {f"{BUS}/0000:{number:02x}:00.0/uevent": uevent(driver) for number, driver in enumerate(drivers, 0x3B)}


def let_in(severity, value, files, message="", remedy="", *, machine="cpu-only", **environ):
    environ = {VARIABLE: value, **environ}
    return says(severity, message, remedy, machine=machine, environ=environ, files=files)


NONE = {f"{BUS}/0000:00:00.0/uevent": None}
SAID = {None: " is not set", "all": "=all", "0": "=0", "void": "=void", "none": "=none", "": "="}
test_nvidia_visible_devices = table(
    "nvidia_visible_devices",
    {
        f"{value!r} keeps two out": let_in(
            "WARNING", value, host("nvidia", "nvidia", "vfio-pci"), f"^{VARIABLE}={value} keeps the host's 2 GPUs out",
            "^docker run --gpus all IMAGE  # ",
        )
        for value in ("void", "none", "")
    },
    {
        f"{value!r} {names}": let_in("NOT_APPLICABLE", value, host(*names), "the host has no NVIDIA GPU")
        for value in ("void", "none", "", None)
        for names in [(), ("vfio-pci",), ("nouveau",)]
    },
    {
        f"{value!r}, and the bus is not seen": let_in(
            "UNKNOWN", value, NONE, (f"^{VARIABLE}{SAID[value]}; whether the host has a GPU could not be read", BUS)
        )
        for value in ("void", "none", None)
    },
    {
        f"{value!r} is not the cause": let_in(
            "NOT_APPLICABLE", value, host("nvidia"),
            f"={VARIABLE}{SAID[value]}; the host has 1 GPU, this container none",
        )
        for value in (None, "all", "0")
    },
    {
        f"{value!r} let it in": let_in("OK", value, {}, VARIABLE + SAID[value], machine="nvidia-h200-x1")
        for value in ("all", "void", None)
    },
    {
        "a device file": let_in("OK", "void", {"/dev/nvidia0": "", **host("nvidia")}),
        "a pod that asks for none": let_in("NOT_APPLICABLE", "void", host("nvidia"), **POD),
        "the variable is the subject": says(
            "WARNING", subject=VARIABLE, machine="cpu-only", environ={VARIABLE: "void"}, files=host("nvidia")
        ),
    },
)  # fmt: skip

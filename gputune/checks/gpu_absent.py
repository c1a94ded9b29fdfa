"""If a GPU was requested, is there one, and can torch use it?

A GPU is requested by NVIDIA_VISIBLE_DEVICES, by a device file, by a scheduler's grant, or by `gputune check
--require-gpu` or `--expect-gpus N`. Without one the job runs on the CPU, slowly and without an error. The remedy
depends on the reason that torch gives. A container whose device files are all there and none may be opened had its GPUs
taken away while it ran: `systemctl daemon-reload` on the host does that where systemd manages the cgroups. A Jetson
board needs the build of torch that NVIDIA makes for it: other wheels for ARM have no code for its integrated GPU.

Source: NVIDIA Container Toolkit, environment variables and troubleshooting (containers losing access to GPUs); CUDA C++
Programming Guide, CUDA Environment Variables; CUDA Runtime API, error codes; NVIDIA, Installing PyTorch for Jetson.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, counted, error, not_applicable, ok, unknown
from gputune.checks._gpus import GRANTED, entries, promise
from gputune.checks._questions import cause, gap, gpu_asked_for, has_gpu, number, nvidia_files
from gputune.checks._remedies import APPTAINER_GPUS, address_of, on_host, python_of, started, typed, without_folders
from gputune.checks.cuda_visible_devices import hidden
from gputune.checks.nvml_missing import BROKEN
from gputune.facts import Gap
from gputune.facts.visible_gpus import VARIABLE

SCHEDULERS = ("slurm", "lsf", "pbs")
"""The schedulers whose jobs see the device files of GPUs that they were not given."""
HANGS = "whether there is a GPU is not known, since NVML hangs or crashes: see nvml_missing"
ELSEWHERE: dict[str | None, str] = {
    "version_mismatch": "NVML rejects the kernel module's version: see driver_mismatch",
    "no_answer": HANGS,
    "killed": HANGS,
    "exited": HANGS,
}
"""By the reason why NVML does not answer, the check that complains of it."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    seen = facts.libraries.device_count
    if facts.libraries.hip:
        yield not_applicable(f"torch {facts.libraries.torch} is built for AMD's GPUs, which gputune does not support")
    elif seen:
        yield ok(f"torch sees {counted(seen, 'GPU')}")
    elif facts.board and not hidden(facts):
        yield on_board(facts, facts.board)
    elif facts.gpus:
        yield _listed(facts)
    else:
        yield _none(facts)


def _listed(facts: Facts) -> Finding:
    listed, failure = f"NVML lists {counted(len(facts.gpus), 'GPU')}", gap(facts, "libraries.devices")
    if hidden(facts):
        message = f"{listed}; {VARIABLE}={facts.environment.get(VARIABLE)!r} hides them from torch"
        is_required = facts.gpu_required or facts.gpus_expected
        return error(message, f"unset {VARIABLE}") if is_required else not_applicable(message)
    if facts.libraries.device_count is None and failure is None:
        return ok(listed)  # no torch, or a build without CUDA: other checks say so
    if elsewhere := _elsewhere(facts, failure):
        return not_applicable(f"{listed}; {elsewhere}")
    message = f"{listed}, but torch can use none{f' ({failure.reason})' if failure else ''}"
    return error(message, by_cause(facts, failure), fact=failure.fact if failure else None)


def _elsewhere(facts: Facts, failure: Gap | None) -> str | None:
    """The reason why torch cannot use the GPUs if another check complains about it; else None."""
    if failure and failure.cause == "fabric_not_ready":
        return "torch waits for Fabric Manager to set up their links: see fabric_manager"
    kernel, user = facts.driver.kernel_version, facts.driver.version
    if kernel and user and kernel != user:
        return f"the kernel module is {kernel}, the driver's libraries are {user}: see driver_mismatch"
    driver, torch = number(facts.driver.cuda), number(facts.libraries.cuda)
    if driver and torch and driver[0] < torch[0] and not (failure and failure.cause):
        return f"the driver supports CUDA {facts.driver.cuda}, torch needs {facts.libraries.cuda}: see driver_cuda"
    return None


def _none(facts: Facts) -> Finding:
    asked = gpu_asked_for(facts)
    if asked and nvidia_files(facts) and hidden(facts):
        message = f"a GPU was requested ({', '.join(asked)}), but {VARIABLE} hides it"
        return error(message, f"unset {VARIABLE}")
    # That no device file may be opened is right only in the job of a scheduler that granted none.
    taken_away = facts.container.forbidden_device_files and not nvidia_files(facts)
    if taken_away and (asked or facts.scheduler.name not in SCHEDULERS):
        return _revoked(facts, asked)
    if told := _told_elsewhere(facts):
        return not_applicable(told)
    if asked:
        message = f"a GPU was requested ({', '.join(asked)}), but neither NVML nor torch finds one"
        return error(message, get_one(facts))
    if facts.container.gpu_device_files:
        return unknown("WSL's /dev/dxg may be any vendor's GPU; if it is NVIDIA's, its Windows driver does not answer")
    return not_applicable("no GPU was requested, and there is none")


def _told_elsewhere(facts: Facts) -> str | None:
    """The check that complains of NVML itself, which cannot be asked or cannot list the GPUs; None if it answers."""
    why = cause(facts, "driver.nvml")
    if why in ELSEWHERE:
        return ELSEWHERE[why]
    fails = why in (*BROKEN, "driver_not_loaded") or gap(facts, "gpu.count")
    return "NVML does not list the GPUs that there are: see nvml_missing" if has_gpu(facts) and fails else None


def _revoked(facts: Facts, asked: list[str]) -> Finding:
    files = facts.container.forbidden_device_files
    what = f"{files[0]} to {files[-1]}" if len(files) > 1 else files[0]
    failure = gap(facts, "driver.nvml")
    signs = f"; a GPU was requested ({', '.join(asked)})" if asked else ""
    message = f"this process may open none of the GPUs' device files ({what}){signs}"
    why = f" ({failure.reason})" if failure else ""
    return error(f"{message}{why}", give_back(facts), what.split()[0], failure.fact if failure else None)


CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
KEEP = "nvidia-ctk system create-dev-char-symlinks --create-all"
REASON = "-c 'import torch; torch.cuda.init()'"
LOOK = on_host("nvidia-smi -L; sudo dmesg | grep -i nvidia")
RELOAD_UVM = on_host(
    "sudo modprobe -r nvidia_uvm",
    "sudo modprobe nvidia_uvm",
    ends_jobs=True,
    changes_node=True,
    note="the first refuses while a program uses a GPU; often after the host was suspended",
)


def by_cause(facts: Facts, failure: Gap | None) -> str:
    remedies: dict[str | None, str] = {
        "stub_library": _out_of_path(facts, "stubs"),
        "compat_unsupported": _out_of_path(facts, "compat"),
        "uvm_broken": RELOAD_UVM,
        "driver_combination": _fitting_driver(facts),
        "no_device": _without_device(facts),
    }
    look = typed(f"{python_of(facts)} {REASON}", note="shows torch's reason")
    return remedies.get(failure.cause if failure else "no_device", look)


def _without_device(facts: Facts) -> str:
    divided = [gpu for gpu in facts.gpus if gpu.health.mig]
    if divided and len(divided) == len(facts.gpus):
        which = address_of(divided[0])
        note = f"lists sizes; sudo nvidia-smi mig -i {which} -cgi SIZE -C makes a slice, without which MIG gives no GPU"
        return on_host(f"sudo nvidia-smi mig -i {which} -lgip", note=note)
    if not facts.container.kind:
        return typed("sudo nvidia-modprobe -u -c=0", root=True, changes_node=True, note="makes the device files anew")
    if facts.container.kind == "apptainer":
        return APPTAINER_GPUS
    pod = 'env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: "compute,utility"}]'
    note = f"{python_of(facts)} {REASON} shows torch's reason"
    return started(facts, f"--gpus {docker_gpus(facts)} -e {CAPABILITIES}", pod, note)


def get_one(facts: Facts) -> str:
    """How to start this job or container with the GPUs that it asked for, and with no others."""
    count = wanted(facts)
    if facts.scheduler.name == "slurm":
        return typed(f"srun --gpus={count} COMMAND", note="if it was so started: nvidia-smi -L on the node lists them")
    option, pod = f"--gpus {docker_gpus(facts)}", f"resources: {{limits: {{nvidia.com/gpu: {count}}}}}"
    if facts.container.kind == "apptainer":
        return APPTAINER_GPUS
    if facts.container.kind in ("docker", "podman", "kubernetes"):
        return started(facts, option, pod, "the host needs the NVIDIA Container Toolkit")
    return f"{LOOK}; in a container: docker run {option} IMAGE"


def give_back(facts: Facts) -> str:
    """How to get back the GPUs of a container whose cgroup was written anew under it."""
    if facts.container.kind == "kubernetes":
        note = f"its controller starts it anew; on the node, as root: {KEEP} keeps it from recurring"
        return typed('kubectl delete pod "$HOSTNAME"', ends_jobs=True, note=note)
    if facts.container.kind in ("docker", "podman"):
        return on_host(
            f"sudo {KEEP}",
            f"{facts.container.kind} restart CONTAINER",
            ends_jobs=True,
            changes_node=True,
            note='the links keep systemctl daemon-reload from doing it again, until a reboot; so does "exec-opts": '
            '["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json',
        )
    if facts.scheduler.name == "slurm":
        return typed(f"srun --gpus={wanted(facts)} COMMAND", note="this step's cgroup has no GPU")
    return typed("ls -l /dev/nvidia*", note="names the group that may open them: ask to be added to it")


def wanted(facts: Facts) -> int:
    promised = promise(facts)
    return max(1, promised.count) if promised else 1


def docker_gpus(facts: Facts) -> str:
    """The value of docker's option --gpus: the GPUs that this container was given, or a count if they are unknown."""
    named = facts.environment.get(GRANTED, "")
    if named in ("", "none", "void"):
        return str(wanted(facts))
    listed = ",".join(sorted(entries(named)))
    if listed == "all":
        return "all"
    return f"device={listed}" if "," not in listed else f"'\"device={listed}\"'"


def _out_of_path(facts: Facts, word: str) -> str:
    path = facts.environment.get("LD_LIBRARY_PATH", "").split(":")
    folders = [entry.rstrip("/") for entry in path if word in entry.split("/")]
    note = "or a newer driver on the host" if word == "compat" else "also where an image or a job script sets it"
    if folders and (commands := without_folders(facts, folders)):
        return typed(commands, note=note)
    if word == "compat":
        remove = "sudo apt-get remove 'cuda-compat-*' && sudo ldconfig"
        return typed(remove, where="in the image", root=True, note=note)
    return typed("ldconfig -p | grep libcuda.so.1", note="take the stub that it lists away; run ldconfig then")


def _fitting_driver(facts: Facts) -> str:
    folders = {path.rpartition("/")[0] for path in facts.libraries.cuda_drivers}
    if folders and (commands := without_folders(facts, folders)):
        return typed(commands, note="a libcuda there is of another version than the kernel module")
    if facts.container.kind in ("docker", "podman"):
        note = "if it stays, the image has a libcuda of its own: take it out"
        return typed(f"{facts.container.kind} restart CONTAINER", where="on the host", ends_jobs=True, note=note)
    note = "drain it first; a libcuda of another version than the kernel module is loaded"
    return on_host("sudo reboot", ends_jobs=True, note=note)


TARGETS = {
    "Thor": ("sm_101", "sm_110"),
    "Orin": ("sm_87",),
    "Xavier": ("sm_72",),
    "TX2": ("sm_62",),
    "TX1": ("sm_53",),
    "Nano": ("sm_53",),
}
"""By a word of the board's model, the targets of code for its GPU. Unlike other GPUs, these do not run the code of a
lower minor version. Source: CUDA C++ Programming Guide, Binary Compatibility; NVIDIA, CUDA GPU Compute Capability."""
WHEEL = typed(
    "cat /etc/nv_tegra_release",
    note="names the release; install the wheel that NVIDIA builds for its JetPack: "
    "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform",
)


def on_board(facts: Facts, board: str) -> Finding:
    torch, compiled = facts.libraries.torch, facts.libraries.architectures
    if torch is None:
        return not_applicable(f"{board} has an integrated GPU; there is no torch that could use it")
    if facts.libraries.cuda is None:
        return error(f"torch {torch} is built without CUDA, so it cannot use the GPU of {board}", WHEEL)
    named = next((targets for word, targets in TARGETS.items() if word in board), None)
    targets = named or tuple(sorted({target for targets in TARGETS.values() for target in targets}))
    if compiled and not set(targets) & set(compiled):
        needs = f"the GPU of {board} needs {' or '.join(targets)}"
        return error(f"{needs}, but torch {torch} has only {', '.join(compiled)}", WHEEL)
    failure = gap(facts, "libraries.devices")
    message = f"torch {torch} cannot use the GPU of {board}{f' ({failure.reason})' if failure else ''}"
    if facts.container.kind:
        remedy = typed("docker run --runtime nvidia IMAGE", where="on the board, beside its other options")
    else:
        remedy = typed(f"{python_of(facts)} {REASON}", note="shows torch's reason")
    return error(message, remedy, fact=failure.fact if failure else None)

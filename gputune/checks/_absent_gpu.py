"""Remedies for a GPU that is not there, or that torch cannot use, by cause. None widens what a job was given."""

from collections.abc import Callable

from gputune.checks._loader import without_folders
from gputune.checks._promised_gpus import VARIABLE, entries, promise
from gputune.checks._remedies import APPTAINER_GPUS, address_of, python_of, started, typed
from gputune.facts import Facts, Gap

CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
REASON = "-c 'import torch; torch.cuda.init()'"
KEEP = "nvidia-ctk system create-dev-char-symlinks --create-all"
LOOK = typed("nvidia-smi -L; sudo dmesg | grep -i nvidia", where="on the host", root=True)
DEVICE_FILES = typed("sudo nvidia-modprobe -u -c=0", root=True, changes_node=True, note="makes the device files anew")
RELOAD_UVM = typed(
    "sudo modprobe -r nvidia_uvm",
    "sudo modprobe nvidia_uvm",
    where="on the host",
    root=True,
    ends_jobs=True,
    changes_node=True,
    note="the first refuses while a program uses a GPU; often after the host was suspended",
)


def by_cause(facts: Facts, failure: Gap | None) -> str:
    """What to type where NVML lists GPUs and torch can use none, by the reason that torch gives."""
    remedies: dict[str | None, Callable[[], str]] = {
        "stub_library": lambda: _out_of_path(facts, "stubs"),
        "compat_unsupported": lambda: _out_of_path(facts, "compat"),
        "uvm_broken": lambda: RELOAD_UVM,
        "driver_combination": lambda: _fitting_driver(facts),
        "no_device": lambda: _without_device(facts),
    }
    return remedies.get(failure.cause if failure else "no_device", lambda: _ask_torch(facts))()


def _without_device(facts: Facts) -> str:
    divided = [gpu for gpu in facts.gpus if gpu.health.mig]
    if divided and len(divided) == len(facts.gpus):
        which = address_of(divided[0])
        note = f"lists sizes; sudo nvidia-smi mig -i {which} -cgi SIZE -C makes a slice, without which MIG gives no GPU"
        return typed(f"sudo nvidia-smi mig -i {which} -lgip", where="on the host", root=True, note=note)
    return _with_compute(facts) if facts.container.kind else DEVICE_FILES


def _with_compute(facts: Facts) -> str:
    if facts.container.kind == "apptainer":
        return APPTAINER_GPUS
    pod = 'env: [{name: NVIDIA_DRIVER_CAPABILITIES, value: "compute,utility"}]'
    note = f"{python_of(facts)} {REASON} shows torch's reason"
    return started(facts, f"--gpus {docker_gpus(facts)} -e {CAPABILITIES}", pod, note)


def _ask_torch(facts: Facts) -> str:
    return typed(f"{python_of(facts)} {REASON}", note="shows torch's reason")


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
        note = "its controller starts it anew; on the node, as root: nvidia-ctk system create-dev-char-symlinks "
        return typed(
            'kubectl delete pod "$HOSTNAME"', ends_jobs=True, note=f"{note}--create-all keeps it from recurring"
        )
    if facts.container.kind in ("docker", "podman"):
        return typed(
            f"sudo {KEEP}",
            f"{facts.container.kind} restart CONTAINER",
            where="on the host",
            root=True,
            ends_jobs=True,
            changes_node=True,
            note='the links keep systemctl daemon-reload from doing it again, until a reboot; so does "exec-opts": '
            '["native.cgroupdriver=cgroupfs"] in /etc/docker/daemon.json',
        )
    if facts.scheduler.name == "slurm":
        return typed(f"srun --gpus={wanted(facts)} COMMAND", note="this step's cgroup has no GPU")
    return typed("ls -l /dev/nvidia*", note="names the group that may open them: ask to be added to it")


def wanted(facts: Facts) -> int:
    """How many GPUs were asked for; 1 where no number was."""
    promised = promise(facts)
    return max(1, promised.count) if promised else 1


def docker_gpus(facts: Facts) -> str:
    """What docker's option --gpus is to name: what this container was given, and where that is not known, a count."""
    named = facts.environment.get(VARIABLE, "")
    if named in ("", "none", "void"):
        return str(wanted(facts))
    listed = ",".join(sorted(entries(named)))
    if listed == "all":
        return "all"
    return f"device={listed}" if "," not in listed else f"'\"device={listed}\"'"


def _out_of_path(facts: Facts, word: str) -> str:
    """Take the folders of that name out of LD_LIBRARY_PATH."""
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
    return typed("sudo reboot", where="on the host", root=True, ends_jobs=True, note=note)

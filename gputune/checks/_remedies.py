"""Remedies that may be typed as they stand: shell commands, and behind a `#` what they need and what they do.

A remedy without a command is plain words. Whoever reads `sudo nvidia-smi ...  # on the host, as root; ends its jobs`
knows before typing it what it costs. Words in capitals (IMAGE, CONTAINER) stand for names that only the reader knows.
"""

import math
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from gputune.checks._questions import number
from gputune.facts import Facts, Gpu

INDEX = "https://download.pytorch.org/whl/cu"
BUILDS = ("11.8", "12.1", "12.4", "12.6", "12.8", "13.0")
"""The CUDA versions of torch's wheels since 2.4 that have an index of their own (PyTorch, Start Locally and Installing
previous versions), without those of a single release."""
OLD_GPUS = ((7, 5), "12.6")
"""Builds for a newer CUDA have no kernels for GPUs below this compute capability (PyTorch's release notes of 2.8)."""
LEAST_ROOM_BYTES = 1 << 30


def typed(
    *commands: str,
    where: str = "",
    root: bool = False,
    ends_jobs: bool = False,
    changes_node: bool = False,
    note: str = "",
) -> str:
    """The commands, each run only if the one before it succeeded, and a comment; `where` is none for this shell."""
    place = ", ".join(filter(None, [where, "as root" if root else ""]))
    does = [word for word, true in (("ends its jobs", ends_jobs), ("changes the node", changes_node)) if true]
    comment = "; ".join(filter(None, [place, *does, note]))
    return " && ".join(commands) + (f"  # {comment}" if comment else "")


def on_host(*commands: str, ends_jobs: bool = False, changes_node: bool = False, note: str = "") -> str:
    return typed(*commands, where="on the host", root=True, ends_jobs=ends_jobs, changes_node=changes_node, note=note)


def bare(remedy: str) -> str:
    """The command of a remedy without its comment, to be named in another's."""
    return remedy.partition("  # ")[0]


def address_of(gpu: Gpu) -> str:
    """The name by which nvidia-smi finds a GPU: its bus address, since a container may number GPUs differently."""
    return str(gpu.pci_bus_id or gpu.uuid or gpu.index)


def smi(gpu: Gpu, *options: str, ends_jobs: bool = False, note: str = "") -> str:
    """nvidia-smi commands for this GPU, on its host; each is run, also if the driver refuses one before it."""
    commands = "; ".join(f"sudo nvidia-smi -i {address_of(gpu)} {option}" for option in options)
    return on_host(commands, ends_jobs=ends_jobs, changes_node=True, note=note)


def reset(gpu: Gpu, *, note: str = "") -> str:
    """Reset one GPU, which nothing may hold open. Source: NVIDIA, nvidia-smi, --gpu-reset."""
    return _reset(f"sudo nvidia-smi -i {address_of(gpu)} --gpu-reset", ["nvidia-persistenced", "nvidia-dcgm"], note)


def reset_all(*, note: str = "") -> str:
    """Reset all GPUs, NVLinks and NVSwitches. Source: NVIDIA, nvidia-smi, --gpu-reset; Fabric Manager User Guide."""
    services = ["nvidia-persistenced", "nvidia-dcgm", "nvidia-fabricmanager"]
    return _reset("sudo nvidia-smi --gpu-reset", services, note)


def _reset(command: str, services: list[str], note: str) -> str:
    names = " ".join(services)
    # Not joined by &&: a host need not have every service, and those that were stopped start again after a failure too.
    return on_host(
        f"sudo systemctl stop {names}; {command}; sudo systemctl start {names}",
        ends_jobs=True,
        changes_node=True,
        note="first drain the node, on Kubernetes also of device plugin and DCGM exporter" + (note and f"; {note}"),
    )


APPTAINER_GPUS = typed("apptainer exec --nv IMAGE", where="on the host", note="and the program to run")


def started(facts: Facts, docker: str, pod: str, note: str = "") -> str:
    """How to start this container with an option: `docker`, or in a Kubernetes pod the field `pod` of its container."""
    if facts.container.kind == "kubernetes":
        return typed(pod, where="in the container of the pod's manifest", note=note)
    command = "podman" if facts.container.kind == "podman" else "docker"
    return typed(f"{command} run {docker} IMAGE", where="on the host, beside its other options", note=note)


def unset(facts: Facts, name: str, kept: Sequence[str] = ()) -> str:
    """Unset a variable, or leave in it what is `kept`. What an image sets comes back with every container."""
    value = shlex.quote(":".join(kept)) if kept else ""
    command = f"export {name}={value}" if kept else f"unset {name}"
    baked = f"if it comes back, take it out of the Dockerfile's ENV, or docker run --env {name}={value} IMAGE"
    return typed(command, note=baked if facts.container.kind else "")


def python_of(facts: Facts) -> str:
    """The interpreter whose torch was examined, as a shell reads it."""
    return shlex.quote(facts.libraries.executable or "python3")


def pip(facts: Facts) -> str:
    return f"{python_of(facts)} -m pip"


def torch_build(facts: Facts, *, keep: bool = True) -> str | None:
    """The CUDA version of the torch to install: the present one's if it is to `keep`, else the newest that fits, if any
    does.
    """
    own, driver = number(facts.libraries.cuda), number(facts.driver.cuda)
    if keep and own:
        same = [build for build in BUILDS if build.startswith(f"{own[0]}.") and (number(build) or own) <= own]
        if same:
            return same[-1]
    capabilities = [number(gpu.compute_capability) for gpu in facts.gpus]
    oldest, most = OLD_GPUS
    if any(one and one < oldest for one in capabilities):
        driver = driver and min(driver, number(most) or driver)
    fitting = [build for build in BUILDS if driver and (number(build) or driver) <= driver]
    same_major = [build for build in BUILDS if driver and build.startswith(f"{driver[0]}.")]  # minor versions mix
    return fitting[-1] if fitting else next(iter(same_major), None)


def torch_index(build: str | None) -> str:
    """Pip's option for the index of torch's wheels for a CUDA version (`12.6`); pip's own index for None."""
    return f" --index-url {INDEX}{build.replace('.', '')}" if build else ""


def room(facts: Facts) -> str | None:
    """A folder of this process's that can be written to and has room, for what does not fit elsewhere; or None."""
    by_name = {folder.variable: folder for folder in facts.process.folders}
    fit = [
        folder.path.rstrip("/")
        for folder in (by_name[name] for name in ("TMPDIR", "XDG_CACHE_HOME", "HOME") if name in by_name)
        if folder.writable and (folder.free_bytes is None or folder.free_bytes >= LEAST_ROOM_BYTES)
    ]
    return next(filter(None, fit), None)


def without_folders(facts: Facts, folders: Collection[str]) -> str | None:
    """Commands that take folders out of LD_LIBRARY_PATH and LD_PRELOAD; None if neither variable names one of them."""
    commands = []
    for variable, separator in (("LD_LIBRARY_PATH", ":"), ("LD_PRELOAD", "[: ]")):
        entries = [entry for entry in re.split(separator, facts.environment.get(variable, "")) if entry]
        left = [entry for entry in entries if not _inside(entry, folders)]
        if len(left) < len(entries):
            commands.append(f"export {variable}={shlex.quote(':'.join(left))}" if left else f"unset {variable}")
    return " && ".join(commands) or None


def _inside(entry: str, folders: Collection[str]) -> bool:
    path = entry.rstrip("/")
    return path in folders or (path.rpartition("/")[0] in folders and ".so" in path)


_PROPERTY = {"cpu": "CPUQuota=", "memory": "MemoryMax=infinity"}
_NONE = {"cpu.max": "max", "cpu.cfs_quota_us": "-1", "memory.max": "max", "memory.limit_in_bytes": "-1"}
_WORDS = {"cpu": "CPUs", "memory": "memory"}


def more(facts: Facts, kind: str, file: str | None) -> str:
    """How to get about twice as much of a kind, `cpu` or `memory`; `file` is the cgroup file that limits it."""
    amount = _twice(facts, kind)
    if facts.scheduler.name == "slurm":
        option = f"--cpus-per-task={amount}" if kind == "cpu" else f"--mem={amount}G"
        return typed(f"#SBATCH {option}", where="in the job's script", note="up to twice as much as now")
    if facts.scheduler.name in ("lsf", "pbs"):
        return f"submit the job again with more {_WORDS[kind]}"
    if facts.container.kind in ("kubernetes", "docker", "podman"):
        pod = f'cpu: "{amount}"' if kind == "cpu" else f"memory: {amount}Gi"
        docker = f"--cpus={amount}" if kind == "cpu" else f"--memory={amount}g"
        return started(facts, docker, f"resources: {{limits: {{{pod}}}}}", note="up to twice as much as now")
    if facts.container.kind:
        return f"start this container again with more {_WORDS[kind]}"
    return _of_system(kind, PurePosixPath(file or ""))


def _of_system(kind: str, path: PurePosixPath) -> str:
    if re.fullmatch(r"[\w@.-]+\.(service|scope|slice)", path.parent.name):
        command = f"sudo systemctl set-property {path.parent.name} {_PROPERTY[kind]}"
        return typed(command, root=True, changes_node=True, note="lifts the unit's limit")
    if path.name in _NONE and re.fullmatch(r"[\w/@:,.-]+", str(path)):
        command = f"echo {_NONE[path.name]} | sudo tee {path}"
        return typed(command, root=True, changes_node=True, note="lifts the group's limit")
    return f"ask whoever set the limit for more {_WORDS[kind]}"


def _twice(facts: Facts, kind: str) -> int:
    """Twice the limit in whole CPUs or GiB, at least two and one, and no more than the machine has."""
    if kind == "cpu":
        return max(1, min(facts.cpu.logical_count, max(2, math.ceil(2 * (facts.cpu.quota or facts.cpu.budget)))))
    twice = 2 * (facts.memory.limit_bytes or 0)
    return max(1, math.ceil(min(twice, facts.memory.total_bytes or twice) / (1 << 30)))

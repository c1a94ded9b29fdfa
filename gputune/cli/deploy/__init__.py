"""`gputune deploy`: print ready-made files for a container engine or a cluster, a subcommand each."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import gputune_start
from gputune.cli import _choices
from gputune.cli.deploy import kubernetes
from gputune.deploy import IMAGE
from gputune.errors import UsageError, require

EPILOG = _choices.epilog("""
  # For this machine
  gputune deploy docker -- python train.py
  # A batch script
  gputune deploy slurm sbatch -- python train.py
  # A Job, a DaemonSet, a ConfigMap
  gputune deploy kubernetes --help
""")

GROUP = typer.Typer(
    help="Print files for Docker, Kubernetes or Slurm.", epilog=EPILOG, no_args_is_help=True, rich_markup_mode=None
)


@GROUP.command(
    epilog=_choices.epilog("""
  # To check this machine in a container
  gputune deploy docker
  # To train in one
  gputune deploy docker --image me/a:1 -- python train.py
""")
)
def docker(
    image: Annotated[str, typer.Option("--image", metavar="IMAGE", help="The image to run.")] = IMAGE,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="CMD", help="After --: the command to run in it. Without one: gputune check."),
    ] = None,
) -> None:
    """Print the docker run command for this machine.

    It has the machine's GPUs, shared memory, limits and a folder for profiles.
    """
    from gputune.deploy.docker import Machine, text
    from gputune.facts import container, memory, pci
    from gputune.facts._nvml_answers import gpu_count
    from gputune.facts.gap import Gaps
    from gputune.host import Host
    from gputune.host.stderr import show

    named, words = _choices.image(image), _choices.command(command)
    host, gaps = Host(), Gaps()
    bound = [device for device in pci.read(host, gaps) or () if device.driver == "nvidia"]
    try:
        listed = gaps.read("gpu.count", lambda: gpu_count(host.nvml().count())) or 0
    finally:
        host.release()
    machine = Machine(
        gpus=max(len(bound), listed),
        infiniband=container.read(host).infiniband,
        cpus=host.cpu_counts()[0],  # of the host, not of this process and its limits
        memory_bytes=memory.read(host, gaps).total_bytes,
    )
    show(text(machine, named, words), end="")


KINDS: Mapping[str, tuple[str, ...]] = {
    "sbatch": ("--nodes", "--gpus-per-node", "--tasks-per-node", "--cpus-per-task", "--image", "-- CMD"),
    "task-prolog": ("--profile",),
    "health-check": ("--drain",),
}
"""The files that can be printed, each with the options that apply to it."""


@GROUP.command(
    epilog=_choices.epilog("""
  # A batch script
  gputune deploy slurm sbatch --nodes 2 -- python train.py
  # To apply a profile to every task
  gputune deploy slurm task-prolog --profile auto
  # To drain nodes that have an error
  gputune deploy slurm health-check --drain
""")
)
def slurm(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="sbatch, task-prolog or health-check.", autocompletion=lambda: KINDS)
    ],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="CMD", help="sbatch, after --: the command that every task runs.")
    ] = None,
    nodes: Annotated[int | None, _choices.count("sbatch: number of nodes.", "1")] = None,
    gpus_per_node: Annotated[int | None, _choices.count("sbatch: GPUs of each node.", "none")] = None,
    tasks_per_node: Annotated[int | None, _choices.count("sbatch: tasks on each node.", "one for each GPU")] = None,
    cpus_per_task: Annotated[int | None, _choices.count("sbatch: CPUs of each task.", "Slurm's")] = None,
    image: Annotated[
        str | None,
        typer.Option(
            "--image", metavar="IMAGE", help="sbatch: the image with gputune in which pyxis and enroot run every step."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            parser=_choices.name,
            metavar="PATH|auto",
            help="task-prolog: a path on all nodes, or auto: each machine's own.",
            autocompletion=_choices.auto,
            show_default="auto",
        ),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="health-check: drain a node that has an error until it is healthy again.")
    ] = False,
) -> None:
    """Print a file for Slurm.

    sbatch is a batch script that measures each node once and runs CMD on all ranks with one profile, task-prolog a
    TaskProlog that applies a profile to every task, and health-check a HealthCheckProgram that reports faulty nodes.
    """
    from gputune.host.stderr import show

    given = {
        "--nodes": nodes, "--gpus-per-node": gpus_per_node, "--tasks-per-node": tasks_per_node,
        "--cpus-per-task": cpus_per_task, "--image": image, "-- CMD": command, "--profile": profile,
        "--drain": drain or None,
    }  # fmt: skip
    _check_slurm(what, {option: value for option, value in given.items() if value is not None})
    show(_slurm_text(what, given), end="")


def _check_slurm(what: str, given: Mapping[str, Any]) -> None:
    require(what, KINDS, "file for Slurm")
    if odd := [option for option in given if option not in KINDS[what]]:
        raise UsageError(f"{odd[0]}: does not apply to {what}", f"omit it, or use {', '.join(KINDS[what])}")
    if what == "sbatch" and not "".join(given.get("-- CMD", [])[:1]).strip():
        remedy = "write it at the end: gputune deploy slurm sbatch -- python train.py"
        raise UsageError("sbatch: the command is missing", remedy)
    if given.get("-- CMD", [""])[0].startswith("-"):
        fault = f"{given['-- CMD'][0]}: srun would take this as an option of its own"
        raise UsageError(fault, "begin the command with a program")
    path = given.get("--profile", "auto")
    if path != "auto" and not Path(path).is_absolute():
        fault = f"--profile {path}: is not an absolute path, and tasks start in any folder"
        raise UsageError(fault, "write the whole path, or auto")
    for option in ("--image", "--profile"):
        if not str(given.get(option, "a")).isprintable() or given.get(option) == "":
            fault = f"{option} {given[option]!r}: is not printable text on one line"
            raise UsageError(fault, "write a name without line breaks")


def _slurm_text(what: str, given: Mapping[str, Any]) -> str:
    from gputune.deploy import slurm

    if what == "task-prolog":
        return slurm.task_prolog(given["--profile"] or "auto", _gputune())
    if what == "health-check":
        return slurm.health_check(sys.executable, drain=bool(given["--drain"]))
    gpus, image = given["--gpus-per-node"], given["--image"]
    job = slurm.Job(
        nodes=given["--nodes"] or 1, tasks_per_node=given["--tasks-per-node"] or gpus or 1, gpus_per_node=gpus,
        cpus_per_task=given["--cpus-per-task"], image=image, gputune=["gputune"] if image else _gputune(),
        command=given["-- CMD"],
    )  # fmt: skip
    return slurm.sbatch(job)


def _gputune() -> list[str]:
    """The command that starts this installation of gputune without a PATH."""
    script = Path(sys.executable).with_name("gputune")
    return [str(script)] if script.exists() else [sys.executable, "-P", gputune_start.__file__]


GROUP.add_typer(kubernetes.GROUP, name="kubernetes")

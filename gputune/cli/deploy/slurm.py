"""`gputune deploy slurm`: a batch script, a TaskProlog or a HealthCheckProgram."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import gputune_start
from gputune.cli import _choices, _paths
from gputune.errors import UsageError

KINDS: Mapping[str, tuple[str, ...]] = {
    "sbatch": ("--nodes", "--gpus-per-node", "--tasks-per-node", "--cpus-per-task", "--image", "-- CMD"),
    "task-prolog": ("--profile",),
    "health-check": ("--drain",),
}
"""The files that can be printed, each with the options that apply to it."""


def slurm(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="sbatch, task-prolog or health-check.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="sbatch: the command that every task runs.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", help="sbatch: number of nodes.", min=1, show_default="1")
    ] = None,
    gpus_per_node: Annotated[
        int | None, typer.Option(metavar="N", help="sbatch: GPUs of each node.", min=1, show_default="none")
    ] = None,
    tasks_per_node: Annotated[
        int | None,
        typer.Option(metavar="N", help="sbatch: tasks on each node.", min=1, show_default="one for each GPU"),
    ] = None,
    cpus_per_task: Annotated[
        int | None, typer.Option(metavar="N", help="sbatch: CPUs of each task.", min=1, show_default="Slurm's")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="sbatch: the image with gputune in which pyxis and enroot run every step."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            parser=_paths.name,
            metavar="PATH|auto",
            help="task-prolog: a path on all nodes, or auto: each machine's own.",
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
        "--nodes": nodes,
        "--gpus-per-node": gpus_per_node,
        "--tasks-per-node": tasks_per_node,
        "--cpus-per-task": cpus_per_task,
        "--image": image,
        "-- CMD": command,
        "--profile": profile,
        "--drain": drain or None,
    }
    _check(what, {option: value for option, value in given.items() if value is not None})
    show(_text(what, given), end="")


def _check(what: str, given: Mapping[str, Any]) -> None:
    _choices.require(what, KINDS, "file for Slurm")
    if odd := [option for option in given if option not in KINDS[what]]:
        raise UsageError(f"{odd[0]}: does not apply to {what}", f"omit it, or use {', '.join(KINDS[what])}")
    if what == "sbatch" and not "".join(given.get("-- CMD", [])[:1]).strip():
        example = "gputune deploy slurm sbatch -- python train.py"
        raise UsageError("sbatch: the command is missing", f"write it at the end: {example}")
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


def _text(what: str, given: Mapping[str, Any]) -> str:
    from gputune.deploy import slurm_health_check, slurm_sbatch, slurm_task_prolog

    if what == "task-prolog":
        return slurm_task_prolog.task_prolog(given["--profile"] or "auto", _gputune())
    if what == "health-check":
        return slurm_health_check.health_check(sys.executable, drain=bool(given["--drain"]))
    return slurm_sbatch.sbatch(
        slurm_sbatch.Job(
            nodes=given["--nodes"] or 1,
            tasks_per_node=given["--tasks-per-node"] or given["--gpus-per-node"] or 1,
            gpus_per_node=given["--gpus-per-node"],
            cpus_per_task=given["--cpus-per-task"],
            image=given["--image"],
            gputune=["gputune"] if given["--image"] else _gputune(),
            command=given["-- CMD"],
        )
    )


def _gputune() -> list[str]:
    """The command that starts this installation of gputune without a PATH."""
    script = Path(sys.executable).with_name("gputune")
    return [str(script)] if script.exists() else [sys.executable, "-P", gputune_start.__file__]

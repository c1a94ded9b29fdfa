"""A Slurm batch script that measures each node once, merges the profiles, and runs a command with the result.

If gputune fails, the command runs without it. The script always ends with the command's exit code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gputune.deploy import node_checks
from gputune.resources.printable import quoted

REACH_INTO_THE_IMAGE = ("GPUTUNE_DISABLE", "GPUTUNE_NUMERICS", "GPUTUNE_REPORT")
"""Variables that a user exports for gputune. Unless named, pyxis lets an image's variables win over the job's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The resources to request from Slurm, and the command to run."""

    nodes: int
    tasks_per_node: int
    gpus_per_node: int | None
    cpus_per_task: int | None
    image: str | None
    """The image with gputune in which pyxis starts every step."""
    gputune: Sequence[str]
    """The command that starts gputune on the nodes, or in the image."""
    command: Sequence[str]


def sbatch(job: Job) -> str:
    """The script. Each value stands once, quoted, at its top."""
    return "\n".join([*_head(job), *_values(job), *(_cpus(job) if job.cpus_per_task else []), _BODY])


def _head(job: Job) -> list[str]:
    options = {
        "nodes": job.nodes,
        "ntasks-per-node": job.tasks_per_node,
        "gpus-per-node": job.gpus_per_node,
        "cpus-per-task": job.cpus_per_task,
    }
    return ["#!/bin/bash", *(f"#SBATCH --{name}={value}" for name, value in options.items() if value), ""]


def _values(job: Job) -> list[str]:
    image = f"--container-image={job.image}"
    container = [quoted(image), f'"--container-env={",".join(REACH_INTO_THE_IMAGE)}"'] if job.image else []
    mount = ['"--container-mounts=$profiles:$profiles"'] if job.image else []
    unchecked = "# shellcheck disable=all  # quoted already"
    return [
        unchecked,
        f"command=({quoted(*job.command)})",
        f"gputune=({quoted(*job.gputune)})",
        f"device={'all' if job.gpus_per_node else 'cpu'}",
        "budget=standard",
        f"must_tell={','.join(node_checks.MUST_TELL)}",
        "# A folder that all nodes share. The job creates its own folder in it.",
        'folder="${SLURM_SUBMIT_DIR:-$PWD}"',
        'profiles="$folder/gputune-$SLURM_JOB_ID"',
        unchecked,
        f"container=({' '.join(container)})",
        f"mount=({' '.join(mount)})",
        "probe=()",
    ]


def _cpus(job: Job) -> list[str]:
    lines = [
        "",
        "# Since Slurm 22.05 srun does not inherit --cpus-per-task.",
        'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"',
    ]
    if job.gpus_per_node:
        lines += [
            "# The probe measures all GPUs of a node at once, with the CPUs of all tasks.",
            'probe=("--cpus-per-task=$((SLURM_CPUS_PER_TASK * ${SLURM_NTASKS_PER_NODE:-1}))")',
        ]
    return lines


_BODY = """
# Probe each node once, and merge the profiles into one for all ranks.
measure() {
  mkdir -p "$profiles" && rm -f "$profiles"/*.yaml "$profiles"/*.report "$profiles"/*.log "$profiles"/*.check || return
  # shellcheck disable=SC2016  # each node expands its own name
  srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 \\
    "${probe[@]}" "${container[@]}" "${mount[@]}" sh -c '
      file=$1/$SLURMD_NODENAME device=$2 budget=$3
      export SLURM_CPUS_PER_TASK="$4"  # the profile must suit the CPUs of one task
      must_tell=$5
      shift 5
      if [ "$device" = all ] &&
        ! timeout -k 5 60 "$@" check --timeout 20 --only "$must_tell" --fail-on unknown >"$file.check" 2>&1; then
        echo "gputune: $SLURMD_NODENAME: the driver or a GPU is in doubt; $file.check says why" >&2
      fi
      exec "$@" probe --device "$device" --budget "$budget" -o "$file.yaml" >"$file.report" 2>"$file.log"
    ' sh "$profiles" "$device" "$budget" "${SLURM_CPUS_PER_TASK-}" "$must_tell" "${gputune[@]}" || return
  srun --nodes=1 --ntasks=1 --ntasks-per-node=1 "${container[@]}" "${mount[@]}" \\
    "${gputune[@]}" merge "$profiles"/*.yaml -o "$profiles/job.yaml"
}

tuned=()
if [ "${GPUTUNE_DISABLE-}" = 1 ]; then
  echo "gputune: GPUTUNE_DISABLE=1 is set: the command runs without gputune" >&2
elif measure; then
  tuned=("${mount[@]}" "${gputune[@]}" apply "$profiles/job.yaml" --)
else
  echo "gputune: no profile was measured; the command runs without one. Last message of each node:" >&2
  tail -n 1 "$profiles"/*.log >&2 2>/dev/null
fi
exec srun "${container[@]}" "${tuned[@]}" "${command[@]}"
"""

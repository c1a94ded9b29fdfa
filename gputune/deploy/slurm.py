"""A batch script for Slurm, and two scripts for its configuration, which no job has to know of.

The batch script measures each node once, merges the profiles, and runs a command with the result. If gputune fails, the
command runs without it. It always ends with the command's exit code.

A TaskProlog applies a profile to every task. Slurm interprets the lines `export`, `unset` and `print` of its output,
stderr included, and ends the task if its exit code is not 0.

A HealthCheckProgram runs `gputune check` on a node's GPUs and driver and reports faults. No answer of a check that
every working node answers is a fault too. slurmd runs it as root, with only SLURMD_NODENAME in its environment, and
kills it after 60 s. It always exits with 0, since any other code keeps a node from registering. It drains nodes only if
asked to, with a reason that begins with `gputune:`, and puts back into service only a node with such a reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gputune.deploy import node_checks
from gputune.resources.printable import quoted

_HEALTH_CHECK = """#!/bin/bash
# For slurm.conf: HealthCheckProgram=PATH of this file, and a HealthCheckInterval.
# Faults go to syslog (and to stderr, for a run by hand). It never fails, and changes no node unless drain=yes.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:/opt/slurm/bin
python=@python@
checks=@checks@
must_tell=@must_tell@
drain=@drain@
node=${SLURMD_NODENAME:-$(hostname -s)}

report() {
  logger -t gputune -- "$node: $1" 2>/dev/null
  echo "gputune: $node: $1" >&2
}

# A line for each finding: severity, tab, text. All deadlines together stay below the 60 s after which slurmd kills.
findings() {
  local answer
  answer=$(timeout -k 3 40 "$python" -I -B -m gputune check --json @patient@ --fail-on never --only "$checks") || return
  timeout -k 1 5 "$python" -I -c '
import json, sys
must_tell = sys.argv[1].split(",")
for finding in sorted(json.load(sys.stdin)["findings"], key=lambda one: one["severity"] == "UNKNOWN"):
    severity = finding["severity"]
    if severity == "UNKNOWN" and finding["check"] in must_tell:
        severity = "ERROR"
    words = [finding["check"], *filter(None, [finding["subject"]]), finding["message"]]
    line = "".join(char if char.isprintable() else "?" for char in ": ".join(words))
    print(severity, line[:200], sep="\\t")
' "$must_tell" <<<"$answer"
}

if ! findings=$(findings); then
  report "gputune check gave no answer"
  exit 0
fi
grep -E '^(ERROR|WARNING)' <<<"$findings" | while IFS=$'\\t' read -r severity what; do
  report "${severity,,}: $what"
done
[ "$drain" = yes ] || exit 0

if ! node_state=$(timeout 4 scontrol show node "$node"); then
  report "scontrol did not report the state of this node"
  exit 0
fi
state=$(sed -n 's/^ *State=\\([^ ]*\\).*/\\1/p' <<<"$node_state")
reason=$(sed -n 's/^ *Reason=//p' <<<"$node_state")
error=$(sed -n 's/^ERROR\\t//p' <<<"$findings" | head -n 1)
if [ -n "$error" ]; then
  case $state in
    *DRAIN* | *DOWN*) ;; # already out of service
    *) timeout 4 scontrol update "NodeName=$node" State=DRAIN "Reason=gputune: $error" && report "drained" ;;
  esac
elif [[ $state == *DRAIN* && $reason == gputune:* ]] && ! grep -q '^UNKNOWN' <<<"$findings" &&
  grep -qE $'^(OK|WARNING)\t[a-z_]*: GPU ' <<<"$findings"; then # at least one GPU is visible and healthy
  timeout 4 scontrol update "NodeName=$node" State=UNDRAIN && report "healthy again: put back into service"
fi
exit 0
"""


def health_check(python: str, drain: bool) -> str:
    """The script. `python` is the path of an interpreter with gputune; `drain` lets it drain and undrain the node."""
    text = _HEALTH_CHECK.replace("@drain@", "yes" if drain else "no", 1)
    text = text.replace("@checks@", ",".join(node_checks.NAMES), 1).replace("@patient@", node_checks.PATIENT, 1)
    text = text.replace("@must_tell@", ",".join(node_checks.MUST_TELL), 1)
    return text.replace("@python@", quoted(python), 1)  # last: a path may contain the other names


_TASK_PROLOG = """#!/bin/bash
# For slurm.conf: TaskProlog=PATH of this file, on all nodes. Each task starts with what the profile recommends.
# A job opts out with: export GPUTUNE_DISABLE=1
# shellcheck disable=all  # quoted already
profile=@profile@
[ "$profile" = auto ] || [ -r "$profile" ] || exit 0

# Slurm reads stderr too, so it is dropped. An answer that broke off is not used.
if lines=$(@gputune@ apply --emit slurm-taskprolog "$profile" 2>/dev/null) && [ -n "$lines" ]; then
  printf '%s\\n' "$lines"
fi
exit 0
"""


def task_prolog(profile: str, gputune: Sequence[str]) -> str:
    """The script. `profile` is an absolute path or auto; `gputune` starts gputune without a PATH."""
    return _TASK_PROLOG.replace("@gputune@", quoted(*gputune), 1).replace("@profile@", quoted(profile), 1)


REACH_INTO_THE_IMAGE = ("GPUTUNE_DISABLE", "GPUTUNE_NUMERICS", "GPUTUNE_REPORT")
"""Variables that a user exports for gputune. Unless named, pyxis lets an image's variables win over the job's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
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

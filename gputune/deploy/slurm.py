"""Two scripts for Slurm's configuration, which no job has to know of.

A TaskProlog applies a profile to every task. Slurm interprets the lines `export`, `unset` and `print` of its output,
stderr included, and ends the task if its exit code is not 0.

A HealthCheckProgram runs `gputune check` on a node's GPUs and driver and reports faults. No answer of a check that
every working node answers is a fault too. slurmd runs it as root, with only SLURMD_NODENAME in its environment, and
kills it after 60 s. It always exits with 0, since any other code keeps a node from registering. It drains nodes only if
asked to, with a reason that begins with `gputune:`, and puts back into service only a node with such a reason.
"""

from collections.abc import Sequence

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
    text = _HEALTH_CHECK.replace("@drain@", "yes" if drain else "no", 1).replace(
        "@checks@", ",".join(node_checks.NAMES), 1
    )
    text = text.replace("@patient@", node_checks.PATIENT, 1)
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

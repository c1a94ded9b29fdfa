"""Slurm's HealthCheckProgram that asks `gputune check` about a node's GPUs and driver, and reports.

slurmd runs it as root, with nothing but SLURMD_NODENAME in its environment, and kills it after 60 s. It ends with 0 whatever it finds:
an exit code other than 0 keeps a node from registering. Only where it is printed with `drain` does it drain a node, with a reason
of its own, and it puts back into service only a node that has such a reason.
"""

from __future__ import annotations

import shlex

from gputune.deploy import node_checks

_TEXT = """#!/bin/bash
# For slurm.conf: HealthCheckProgram=PATH of this file, and a HealthCheckInterval.
# What is wrong goes to syslog (and to stderr, for a run by hand). It never fails, and changes no node unless drain=yes.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:/opt/slurm/bin
python=@python@
checks=@checks@
drain=@drain@
node=${SLURMD_NODENAME:-$(hostname -s)}

report() {
  logger -t gputune -- "$node: $1" 2>/dev/null
  echo "gputune: $node: $1" >&2
}

# One line a finding: how bad it is, a tab, and what it is. Together well below the 60 s after which slurmd kills.
findings() {
  local answer
  answer=$(timeout -k 3 40 "$python" -I -B -m gputune check --json --fail-on never --only "$checks") || return
  timeout -k 1 5 "$python" -I -c '
import json, sys
for one in json.load(sys.stdin)["findings"]:
    words = [one["check"], *filter(None, [one["subject"]]), one["message"]]
    line = "".join(char if char.isprintable() else "?" for char in ": ".join(words))
    print(one["severity"], line[:200], sep="\\t")
' <<<"$answer"
}

if ! found=$(findings); then
  report "gputune check gave no answer"
  exit 0
fi
grep -E '^(ERROR|WARNING)' <<<"$found" | while IFS=$'\\t' read -r severity what; do
  report "${severity,,}: $what"
done
[ "$drain" = yes ] || exit 0

if ! told=$(timeout 4 scontrol show node "$node"); then
  report "scontrol does not tell this node's state"
  exit 0
fi
state=$(sed -n 's/^ *State=\\([^ ]*\\).*/\\1/p' <<<"$told")
reason=$(sed -n 's/^ *Reason=//p' <<<"$told")
error=$(sed -n 's/^ERROR\\t//p' <<<"$found" | head -n 1)
if [ -n "$error" ]; then
  case $state in
    *DRAIN* | *DOWN*) ;; # somebody saw to it already
    *) timeout 4 scontrol update "NodeName=$node" State=DRAIN "Reason=gputune: $error" && report "drained" ;;
  esac
elif [[ $state == *DRAIN* && $reason == gputune:* ]] && ! grep -q '^UNKNOWN' <<<"$found" &&
  grep -qE $'^(OK|WARNING)\t[a-z_]*: GPU ' <<<"$found"; then # a node that shows no GPU at all has none that is healthy
  timeout 4 scontrol update "NodeName=$node" State=UNDRAIN && report "healthy again: put back into service"
fi
exit 0
"""


def health_check(python: str, drain: bool) -> str:
    """The script. `python` is the path of an interpreter that has gputune."""
    values = {
        "@drain@": "yes" if drain else "no",
        "@checks@": ",".join(node_checks.NAMES),
        "@python@": shlex.quote(python),
    }
    text = _TEXT
    for name, value in values.items():
        text = text.replace(name, value, 1)
    return text

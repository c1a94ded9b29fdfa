"""Do others use the CPUs of this process now?

What is measured meanwhile is measured beside them, and what trains meanwhile shares with them: threads that divide work
wait for the one whose CPU is taken. (Beside one busy loop on two CPUs a matmul with two threads ran at a twelfth of its
speed.) Others are processes of this machine, and other guests of its host, who take CPUs away from a virtual machine
without a process that could be seen (steal). They count where they leave fewer CPUs than this process's budget.
`gputune probe` waits for a busy machine for a while, and marks as provisional what it could only measure beside others.

Source: /proc/stat, over the moment in which the facts are read; Linux, proc_stat(5).
"""

from gputune.checks._answers import Facts, Finding, ok, one_finding, unread, warning
from gputune.checks._remedies import typed
from gputune.facts.busy import is_busy

MOMENTARY = True


@one_finding
def check(facts: Facts) -> Finding:
    cpu = facts.cpu
    if cpu.others is None:
        return unread(facts, "cpu.others", "how much of the CPUs others use")
    usage = f"others use {cpu.others:.1f} of {cpu.affinity_count} CPUs"
    if not is_busy(cpu, cpu.others):
        return ok(usage)
    if cpu.stolen and cpu.stolen >= cpu.others / 2:
        remedy = "move to a host that is shared by fewer: a probe here measures its neighbours too"
        return warning(f"{usage}, other guests of the host {cpu.stolen:.1f} of them", remedy)
    return warning(usage, typed("top", note="names them; wait until they are idle before you probe"))

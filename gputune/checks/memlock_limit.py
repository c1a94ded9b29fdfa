"""May this process lock as much memory as InfiniBand needs?

InfiniBand adapters access memory that must not be moved. Containers may often lock only 64 KiB to 8 MiB, and NCCL then
fails with "ibv_reg_mr ... Cannot allocate memory". Under Slurm the limit comes from slurmd, not from the container's
flags.

Source: NCCL, Troubleshooting; getrlimit(2), RLIMIT_MEMLOCK.
"""

from gputune.checks._answers import Facts, Findings, Measurements, gib, not_applicable, ok, unread, warning
from gputune.checks._questions import reason
from gputune.checks._remedies import on_host, started, typed

LEAST_BYTES = 1 << 30
SLURMD = "/etc/systemd/system/slurmd.service.d"
CAPABILITY = "securityContext: {capabilities: {add: [IPC_LOCK]}}"


def check(facts: Facts, measurements: Measurements) -> Findings:
    limit = facts.process.locked_bytes
    if not facts.container.infiniband:
        yield not_applicable("there is no InfiniBand adapter")
    elif reason(facts, "process.locked_bytes"):
        yield unread(facts, "process.locked_bytes", "the limit of locked memory")
    elif limit is not None and limit < LEAST_BYTES:
        yield warning(f"only {gib(limit)} may be locked, and InfiniBand needs more", _remedy(facts))
    else:
        yield ok("any amount of memory may be locked" if limit is None else f"{gib(limit)} may be locked")


def _remedy(facts: Facts) -> str:
    if facts.scheduler.name == "slurm":
        return typed(
            f"sudo mkdir -p {SLURMD}",
            rf"printf '[Service]\nLimitMEMLOCK=infinity\n' | sudo tee {SLURMD}/memlock.conf",
            "sudo systemctl daemon-reload",
            "sudo systemctl restart slurmd",
            where="on the node",
            root=True,
            changes_node=True,
            note="and in slurm.conf PropagateResourceLimitsExcept=MEMLOCK",
        )
    if facts.container.kind in (None, "apptainer"):  # which has the limits of the shell that starts it
        limit = 'echo "$(id -un) - memlock unlimited" | sudo tee /etc/security/limits.d/memlock.conf'
        return on_host(limit, changes_node=True, note="then log in anew")
    return started(facts, "--ulimit memlock=-1", CAPABILITY)

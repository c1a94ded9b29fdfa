"""Do NCCL's variables switch off a path between GPUs that this machine has?

NCCL_P2P_DISABLE sends data between GPUs through the host's memory instead of NVLink or PCIe, NCCL_SHM_DISABLE through
sockets where there is no direct path, and NCCL_IB_DISABLE or NCCL_NET=Socket takes TCP instead of InfiniBand, several
times slower each. They are set while a hang is looked for, and stay in an image or a job script. On desktop GPUs, which
have no direct path of their own, NCCL_P2P_DISABLE is a usual remedy for hangs.

Source: NCCL documentation, environment variables.
"""

import re

from gputune.checks._answers import Facts, Finding, Findings, Measurements, no_gpu, not_applicable, ok, warning
from gputune.checks._questions import consumer
from gputune.checks._remedies import typed

VARIABLES = ("FI_PROVIDER",)
SWITCHES = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")
NOT_ZERO = re.compile(r"\s*[+-]?(0[xX]0*[1-9a-fA-F]|0*[1-9])")
"""A value that NCCL reads as a number other than 0. It ignores words."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    found = [_judge(facts, name, facts.environment[name]) for name in _switches(facts)]
    if found and not facts.gpus:
        yield no_gpu(facts)
    elif found:
        yield from found
    else:
        yield ok("no variable of NCCL's switches off a path between GPUs")


def _switches(facts: Facts) -> list[str]:
    names = [name for name in SWITCHES if NOT_ZERO.match(facts.environment.get(name, ""))]
    if facts.environment.get("NCCL_P2P_LEVEL", "").upper() in ("LOC", "0"):
        names.append("NCCL_P2P_LEVEL")
    if facts.environment.get("NCCL_NET", "").lower() == "socket":
        names.append("NCCL_NET")
    return names


def _judge(facts: Facts, name: str, value: str) -> Finding:
    setting = f"{name}={value}"
    if name in ("NCCL_IB_DISABLE", "NCCL_NET"):
        harmless, path = _without_infiniband(facts), "InfiniBand, and TCP is used"
    elif name == "NCCL_SHM_DISABLE":
        harmless, path = _alone(facts), "shared memory, and sockets are used where GPUs have no direct path"
    else:
        harmless, path = _alone(facts) or _without_direct_path(facts), "the direct path between GPUs"
    if harmless:
        return not_applicable(f"{setting}: {harmless}", name)
    note = "also where an image, a job script, ~/.nccl.conf or /etc/nccl.conf sets it"
    return warning(f"{setting} switches off {path}", typed(f"unset {name}", note=note), name)


def _alone(facts: Facts) -> str | None:
    return "there is one GPU" if max(len(facts.gpus), facts.libraries.device_count or 0) < 2 else None


def _without_direct_path(facts: Facts) -> str | None:
    if all(consumer(gpu) and not any(gpu.health.nvlinks_up or ()) for gpu in facts.gpus):
        return "desktop GPUs without NVLink have no direct path to switch off"
    return None


def _without_infiniband(facts: Facts) -> str | None:
    if not facts.container.infiniband:
        return "there is no InfiniBand"
    if facts.environment.get("FI_PROVIDER") == "efa":
        return "libfabric is used instead (FI_PROVIDER=efa)"
    return None

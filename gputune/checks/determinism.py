"""Is determinism asked for, and does what is set contradict it?

Deterministic algorithms give the same bits in every run, and are slower where the fast ones are not. They contradict
cudnn.benchmark, which chooses algorithms by timing, and need CUBLAS_WORKSPACE_CONFIG=:4096:8 (or :16:8), without which
cuBLAS refuses. That variable alone makes nothing deterministic, and `:16:8` leaves cuBLAS little to work in: slower matmuls.

Source: PyTorch, Reproducibility; cuBLAS, Results Reproducibility.
"""

import re

from gputune.checks._answers import ok, unread, warning
from gputune.checks._common import Facts, Finding, Findings, Measurements, number
from gputune.facts import Flags

VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
DETERMINISTIC = (":4096:8", ":16:8")
DEFAULT_KIB, HOPPER_KIB = 8320, 32768
"""What torch gives cuBLAS by itself, before Hopper and from it on."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    flags = facts.precision.flags
    if flags is None or flags.deterministic_algorithms is None:
        yield unread(facts, "libraries.flags", "torch's flags")
    else:
        workspace = facts.environment.get(VARIABLE) if facts.libraries.cuda else None
        yield _flags(flags, workspace, cuda=facts.libraries.cuda is not None) or _workspace(facts, workspace)


def _flags(flags: Flags, workspace: str | None, cuda: bool) -> Finding | None:
    asked = flags.deterministic_algorithms or flags.cudnn_deterministic
    if asked and flags.cudnn_benchmark:
        message = "determinism is asked for, and cudnn.benchmark chooses algorithms by timing"
        return warning(message, "torch.backends.cudnn.benchmark = False")
    if flags.deterministic_algorithms and cuda and workspace not in DETERMINISTIC:
        message = f"deterministic algorithms are asked for, and {VARIABLE} is {workspace or 'not set'}: cuBLAS refuses or warns"
        return warning(message, f"export {VARIABLE}=:4096:8", VARIABLE)
    if asked:
        remedy = "leave it, where the same bits are worth it; else torch.use_deterministic_algorithms(False)"
        return warning("determinism is asked for in every program, which costs speed", remedy)
    return None


def _workspace(facts: Facts, workspace: str | None) -> Finding:
    hopper = any((number(gpu.compute_capability) or (0, 0)) >= (9, 0) for gpu in facts.gpus)
    usual = HOPPER_KIB if hopper else DEFAULT_KIB
    if workspace is None or not re.fullmatch(r"(:\d{1,9}:\d{1,9})+", workspace):
        return ok("determinism is not asked for")
    kib = sum(int(size) * int(count) for size, count in re.findall(r":(\d+):(\d+)", workspace))
    if kib < usual:
        message = f"{VARIABLE}={workspace} leaves cuBLAS {kib} KiB to work in, of {usual} that torch would give it"
        return warning(
            message, f"export {VARIABLE}=:4096:8, or unset it where nothing has to be deterministic", VARIABLE
        )
    return ok(f"determinism is not asked for ({VARIABLE}={workspace} takes nothing away)")

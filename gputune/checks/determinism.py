"""Is determinism requested, and do other settings contradict it?

Deterministic algorithms give bit-identical results in every run, but are often slower. They contradict cudnn.benchmark,
which selects algorithms by timing, and need CUBLAS_WORKSPACE_CONFIG=:4096:8 (or :16:8), without which torch refuses to
call cuBLAS. That variable alone makes nothing deterministic, and `:16:8` slows matmuls down because it leaves cuBLAS
little workspace.

Source: PyTorch, Reproducibility; cuBLAS, Results Reproducibility.
"""

import re

from gputune.checks._answers import Facts, Finding, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import number
from gputune.checks._remedies import typed
from gputune.facts import Flags

VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
DETERMINISTIC = (":4096:8", ":16:8")
DEFAULT_KIB, HOPPER_KIB = 8320, 32768
"""The workspace that torch gives cuBLAS by default, before Hopper and from Hopper on."""


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
        message = "determinism is requested, but cudnn.benchmark selects algorithms by timing"
        return warning(message, "torch.backends.cudnn.benchmark = False")
    if flags.deterministic_algorithms and cuda and workspace not in DETERMINISTIC:
        message = f"deterministic algorithms are on, but {VARIABLE} is {workspace or 'not set'}: cuBLAS fails or warns"
        return warning(message, f"export {VARIABLE}=:4096:8", VARIABLE)
    if asked:
        remedy = typed("torch.use_deterministic_algorithms(False)", note="unless you need bit-identical results")
        return warning("determinism is on, which costs speed", remedy)
    return None


def _workspace(facts: Facts, workspace: str | None) -> Finding:
    hopper = any((number(gpu.compute_capability) or (0, 0)) >= (9, 0) for gpu in facts.gpus)
    usual = HOPPER_KIB if hopper else DEFAULT_KIB
    if workspace is None or not re.fullmatch(r"(:\d{1,9}:\d{1,9})+", workspace):
        return ok("determinism is not requested")
    kib = sum(int(size) * int(count) for size, count in re.findall(r":(\d+):(\d+)", workspace))
    if kib < usual:
        message = f"{VARIABLE}={workspace} gives cuBLAS {kib} KiB of workspace; torch's default is {usual} KiB"
        remedy = typed(f"export {VARIABLE}=:4096:8", note="or unset it if nothing has to be deterministic")
        return warning(message, remedy, VARIABLE)
    return ok(f"determinism is not requested ({VARIABLE}={workspace} costs nothing)")

"""Do cuBLAS, cuDNN or NCCL log what they do?

Their logs are for debugging: those of cuBLAS and cuDNN write at every call, slow a program down and fill a disk. NCCL_DEBUG=
WARN stays quiet until something is wrong; INFO tells of every communicator, TRACE of every call.

Source: cuBLAS, cuDNN and NCCL documentation, environment variables; PyTorch, TORCH_DISTRIBUTED_DEBUG.
"""

from gputune.checks._answers import ok, warning
from gputune.checks._common import Facts, Findings, Measurements

QUIET = {
    "CUBLAS_LOGINFO_DBG": ("0",),
    "CUBLASLT_LOG_LEVEL": ("0", "1"),
    "CUBLASLT_LOG_MASK": ("0", "1"),
    "CUDNN_LOGINFO_DBG": ("0",),
    "CUDNN_LOGLEVEL_DBG": ("0", "1", "2"),
    "CUDNN_FRONTEND_LOG_INFO": ("0",),
}
"""Variable to the values under which it writes nothing, or errors and warnings only."""
LOUD = {"NCCL_DEBUG": ("INFO", "TRACE", "ABORT"), "TORCH_DISTRIBUTED_DEBUG": ("INFO", "DETAIL")}
"""Variable to those under which it writes; other words do nothing."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    given = facts.environment
    left = [name for name in QUIET if given.get(name) and given[name] not in QUIET[name]]
    left += [name for name in LOUD if given.get(name, "").upper() in LOUD[name]]
    if left:
        yield warning(
            f"left on: {', '.join(f'{name}={given[name]}' for name in left)}", f"unset {' '.join(left)}", left[0]
        )
    else:
        yield ok("no library's logging is on")

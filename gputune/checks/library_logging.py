"""Do cuBLAS, cuDNN or NCCL log what they do?

Their logs are for debugging. cuBLAS and cuDNN write at every call, which slows a program down and fills the disk.
NCCL_DEBUG=WARN is silent until something is wrong; INFO logs every communicator, TRACE every call.

Source: cuBLAS, cuDNN and NCCL documentation, environment variables; PyTorch, TORCH_DISTRIBUTED_DEBUG.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unset

QUIET = {
    "CUBLAS_LOGINFO_DBG": ("0",),
    "CUBLASLT_LOG_LEVEL": ("0", "1"),
    "CUBLASLT_LOG_MASK": ("0", "1"),
    "CUDNN_LOGINFO_DBG": ("0",),
    "CUDNN_LOGLEVEL_DBG": ("0", "1", "2"),
    "CUDNN_FRONTEND_LOG_INFO": ("0",),
}
"""By variable, the values with which the library writes nothing, or errors and warnings only."""
LOUD = {"NCCL_DEBUG": ("INFO", "TRACE", "ABORT"), "TORCH_DISTRIBUTED_DEBUG": ("INFO", "DETAIL")}
"""By variable, the values that turn the log on; all others have no effect."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    environment = facts.environment
    left = [name for name in QUIET if environment.get(name) and environment[name] not in QUIET[name]]
    left += [name for name in LOUD if environment.get(name, "").upper() in LOUD[name]]
    for name in left:
        yield unset(f"logging is on: {name}={environment[name]}", name)
    if not left:
        yield ok("no library's logging is on")

"""Does an environment variable override torch's TF32 flags?

cuBLAS and cuDNN themselves read NVIDIA_TF32_OVERRIDE: 0 forbids TF32, and 1 forces it on matmuls and RNNs (not on
convolutions whose flag is off), while the flags still show what was set. TORCH_ALLOW_TF32_CUBLAS_OVERRIDE is weaker:
since torch 2 it only sets the initial value of the matmul flag, and only 1 and 0 have an effect. Unset the variable, or
keep it on purpose.

Source: PyTorch, CUDA environment variables; NVIDIA_TF32_OVERRIDE's effect measured on an H200.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, ok, unset, without_tf32
from gputune.facts import Flags
from gputune.facts.environment import TF32_OVERRIDE

TORCH = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"


def check(facts: Facts, measurements: Measurements) -> Findings:
    nvidia, torch = facts.environment.get(TF32_OVERRIDE), facts.environment.get(TORCH)
    if finding := without_tf32(facts):
        yield finding
        return
    if nvidia is None and torch is None:
        yield ok("no environment variable overrides TF32")
    if nvidia is not None:
        yield _nvidia(nvidia, facts.precision.flags)
    if torch in ("0", "1"):
        state = "on" if torch == "1" else "off"
        yield ok(f"{TORCH}={torch} starts torch's matmul flag {state}; the program may still change it", TORCH)
    elif torch is not None:
        yield unset(f"{TORCH}={torch} has no effect: torch accepts only 0 and 1", TORCH)


def _nvidia(value: str, flags: Flags | None) -> Finding:
    does = {"0": "forbids TF32", "1": "forces TF32 on matmuls and RNNs"}.get(value)
    if does is None:
        return unset(f"{TF32_OVERRIDE}={value} is neither 0 nor 1; its effect is not documented", TF32_OVERRIDE)
    wanted = value == "1"
    if flags is not None and flags.matmul_tf32 is flags.cudnn_tf32 is wanted:
        return ok(f"{TF32_OVERRIDE}={value} {does}, as torch's flags do", TF32_OVERRIDE)
    read = {"matmul": flags and flags.matmul_tf32, "cuDNN": flags and flags.cudnn_tf32}
    other = [name for name, flag in read.items() if flag is not None and flag is not wanted]
    against = f"{' and '.join(other)} {'off' if wanted else 'on'}" if other else "not read"
    return unset(f"{TF32_OVERRIDE}={value} {does}, whatever torch's flags say ({against})", TF32_OVERRIDE)

"""Do torch's older and newer switches for TF32 contradict each other?

Since 2.9 torch has two ways to allow TF32: `allow_tf32` with set_float32_matmul_precision, and `fp32_precision`. If a
program or a sitecustomize sets only the newer one, the older getters raise ("mix of the legacy and new APIs"), and so
do torch.compile (before 2.15), torch.export and Lightning, which call them. Set both to the same value, as
`gputune.apply` does.

Source: PyTorch, CUDA notes, TF32; found in torch 2.9 to 2.15.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import reason

REMEDY = (
    "torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True  # or False, after the newer "
    "switches: these set both, and so does gputune.apply"
)


def check(facts: Facts, measurements: Measurements) -> Findings:
    conflict = facts.precision.api_conflict
    if conflict:
        yield warning(f"torch's older and newer switches disagree: {conflict}", REMEDY)
    elif facts.libraries.torch is None or reason(facts, "libraries.api_conflict"):
        yield unread(facts, "libraries.api_conflict", "the state of torch's TF32 switches")
    else:
        yield ok("torch's older and newer switches agree")

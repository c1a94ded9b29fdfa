"""Are the loaded cuBLAS and cuDNN new enough to know TF32?

TF32 came with CUDA 11: cuBLAS before 11 and cuDNN before 8 compute in full FP32 whatever torch's flags say, several
times slower on a GPU that has TF32. A current torch brings current libraries; LD_LIBRARY_PATH may put older ones before
them.

Source: release notes of cuBLAS 11.0 and cuDNN 8.0.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import all_lack, no_gpu, number, unread, without_cuda_torch
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "tf32_libraries"
FIRST_MAJOR = {"cublas": ("cuBLAS", 11), "cudnn": ("cuDNN", 8)}


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    if not facts.gpus:
        yield no_gpu(facts, CHECK)
    elif all_lack(facts, "tf32"):
        yield Finding(
            check=CHECK, severity="NOT_APPLICABLE", message="no GPU here has TF32 (compute capability 8.0 on)"
        )
    elif finding := without_cuda_torch(facts, CHECK):
        yield finding
    else:
        for field, (name, first) in FIRST_MAJOR.items():
            yield _of(facts, field, name, first)


def _of(facts: Facts, field: str, name: str, first: int) -> Finding:
    version = getattr(facts.libraries, field)
    found = number(version)
    if found is None:
        return unread(facts, CHECK, f"libraries.{field}", f"{name}'s version")
    if found[0] >= first:
        return Finding(check=CHECK, severity="OK", message=f"{name} {version} knows TF32", subject=name)
    return Finding(
        check=CHECK,
        severity="WARNING",
        message=f"{name} {version} knows no TF32, which came with {name} {first}",
        remedy="unset LD_LIBRARY_PATH, or pip install --upgrade torch",
        subject=name,
    )

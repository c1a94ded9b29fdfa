"""Are the loaded cuBLAS and cuDNN new enough for TF32?

TF32 came with CUDA 11: cuBLAS before 11 and cuDNN before 8 compute in full FP32 whatever torch's flags say, several
times slower on a GPU that has TF32. A current torch includes current libraries; LD_LIBRARY_PATH may put older ones
before them.

Source: release notes of cuBLAS 11.0 and cuDNN 8.0.
"""

from gputune.checks import Finding
from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning, without_cuda_torch, without_tf32
from gputune.checks._questions import number
from gputune.checks._remedies import pip, torch_build, torch_index, typed, without_folders

FIRST_MAJOR = {"cublas": ("cuBLAS", 11), "cudnn": ("cuDNN", 8)}


def check(facts: Facts, measurements: Measurements) -> Findings:
    if finding := without_tf32(facts) or without_cuda_torch(facts):
        yield finding
    else:
        for field, (name, first) in FIRST_MAJOR.items():
            yield _judge(facts, field, name, first)


def _judge(facts: Facts, field: str, name: str, first: int) -> Finding:
    version = getattr(facts.libraries, field)
    found = number(version)
    if found is None:
        return unread(facts, f"libraries.{field}", f"{name}'s version")
    if found[0] >= first:
        return ok(f"{name} {version} supports TF32", name)
    message = f"{name} {version} does not support TF32, which came with {name} {first}"
    return warning(message, _remedy(facts, field), name)


def _remedy(facts: Facts, library: str) -> str:
    """Take out the folder of a loaded library (`cudnn`) that is not torch's; if no variable names it, torch is old."""
    own = {path.rpartition("/")[0] for path in facts.libraries.bundled}
    folders = {path.rpartition("/")[0] for path in facts.libraries.loaded if f"/lib{library}" in path} - own
    upgrade = f"{pip(facts)} install --upgrade torch{torch_index(torch_build(facts))}"
    taken = without_folders(facts, folders)
    return typed(taken, note=f"or, if torch itself is that old: {upgrade}") if taken else upgrade

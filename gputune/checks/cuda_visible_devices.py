"""Does CUDA_VISIBLE_DEVICES name GPUs that are here?

It lists the GPUs that a program may see, by number or by UUID. CUDA takes it up to the first entry that names none (-1, a
number too high, a word) and silently leaves out the rest; an entry that comes twice leaves nothing. Empty, it hides every
GPU, and torch runs on the CPU without an error. torch.cuda.device_count() reads it by itself: it does not know a UUID in
capitals, which CUDA does.

Source: CUDA C++ Programming Guide, CUDA Environment Variables; torch.cuda.device_count.
"""

from gputune.checks._answers import not_applicable, ok, unknown, warning
from gputune.checks._common import Facts, Finding, Findings, Measurements, has_gpu, reason
from gputune.facts.visible_gpus import VARIABLE, visible

HIDES = ("", "-1", "NoDevFiles")


def check(facts: Facts, measurements: Measurements) -> Findings:
    value = facts.environment.get(VARIABLE)
    if value is None:
        yield ok(f"{VARIABLE} is not set")
    elif facts.libraries.hip:
        yield not_applicable(f"torch {facts.libraries.torch} is built for AMD's GPUs, which gputune does not look at")
    elif not has_gpu(facts):
        yield _without(value)
    else:
        yield _finding(facts, value)


def _without(value: str) -> Finding:
    if value.strip() in HIDES:
        return not_applicable(f"{VARIABLE}={value!r} hides GPUs, and there is none")
    message = f"{VARIABLE}={value!r} names a GPU, and there is none"
    return warning(message, f"unset {VARIABLE}, or ask for a GPU", VARIABLE)


def _finding(facts: Facts, value: str) -> Finding:
    told, uuids, seen = f"{VARIABLE}={value!r}", _uuids(facts), facts.libraries.device_count
    if value.strip() in HIDES:
        return warning(f"{told} hides every GPU from torch", f"unset {VARIABLE}", VARIABLE)
    if uuids is None or "MIG-" in value:  # only torch can tell
        if seen is None:
            return unknown(f"{told}; neither NVML nor torch tells what it leaves to see")
        return (
            ok(f"{told}: torch sees {seen}")
            if seen
            else warning(f"{told}: torch sees none", f"unset {VARIABLE}", VARIABLE)
        )
    taken, refused = visible(value, uuids)
    if refused is not None:
        message = f"{told}: {refused}, so that {len(taken)} of {len(uuids)} GPUs are visible"
        return warning(message, f"export {VARIABLE}={','.join(map(str, taken or range(len(uuids))))}", VARIABLE)
    if "GPU-" in value and seen is not None and seen < len(taken):
        message = f"{told} names {len(taken)} of {len(uuids)} GPUs, and torch.cuda.device_count() says {seen}"
        return warning(message, f"export {VARIABLE}={','.join(uuids[index] for index in taken)}", VARIABLE)
    return ok(f"{told}: {len(taken)} of {len(uuids)} GPUs are visible")


def _uuids(facts: Facts) -> list[str] | None:
    """Those of NVML's GPUs; None where NVML does not tell them all."""
    if not facts.driver.nvml or reason(facts, "gpu.count"):
        return None
    uuids = [gpu.uuid for gpu in facts.gpus if not gpu.is_mig_slice]
    return None if None in uuids else [uuid for uuid in uuids if uuid]


def hidden(facts: Facts) -> bool:
    """The variable leaves no GPU to see."""
    value, uuids = facts.environment.get(VARIABLE), _uuids(facts)
    if value is None or value.strip() in HIDES:
        return value is not None
    return bool(uuids) and "MIG-" not in value and not visible(value, uuids or [])[0]

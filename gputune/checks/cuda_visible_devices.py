"""Does CUDA_VISIBLE_DEVICES name GPUs that exist on this machine?

It lists the GPUs that a program may see, by number or by UUID. CUDA stops at the first entry that names no GPU (-1, a
number too high, a word) and silently ignores the rest; if an entry occurs twice, no GPU is visible. An empty value
hides every GPU, and torch runs on the CPU without an error. torch.cuda.device_count() parses the variable itself and,
unlike CUDA, does not recognise a UUID in capitals.

Source: CUDA C++ Programming Guide, CUDA Environment Variables; torch.cuda.device_count.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, not_applicable, ok, unknown, unset, warning
from gputune.checks._questions import has_gpu, reason
from gputune.facts.visible_gpus import VARIABLE, visible

HIDES = ("", "-1", "NoDevFiles")


def check(facts: Facts, measurements: Measurements) -> Findings:
    value = facts.environment.get(VARIABLE)
    if value is None:
        yield ok(f"{VARIABLE} is not set")
    elif facts.libraries.hip:
        yield not_applicable(f"torch {facts.libraries.torch} is built for AMD's GPUs, which gputune does not support")
    elif not has_gpu(facts):
        yield _without(value)
    else:
        yield _finding(facts, value)


def _without(value: str) -> Finding:
    if value.strip() in HIDES:
        return not_applicable(f"{VARIABLE}={value!r} hides GPUs, but there is none to hide")
    message = f"{VARIABLE}={value!r} names a GPU, but there is none"
    return warning(message, f"unset {VARIABLE}, or ask for a GPU", VARIABLE)


def _finding(facts: Facts, value: str) -> Finding:
    setting, uuids, seen = f"{VARIABLE}={value!r}", _uuids(facts), facts.libraries.device_count
    if value.strip() in HIDES:
        return unset(f"{setting} hides every GPU from torch", VARIABLE)
    if uuids is None or "MIG-" in value:
        return _by_torch(setting, seen)
    taken, refused = visible(value, uuids)
    if refused is not None:
        message = f"{setting}: {refused}, so only {len(taken)} of {len(uuids)} GPUs are visible"
        return warning(message, f"export {VARIABLE}={','.join(map(str, taken or range(len(uuids))))}", VARIABLE)
    if "GPU-" in value and seen is not None and seen < len(taken):
        message = f"{setting} names {len(taken)} of {len(uuids)} GPUs, and torch.cuda.device_count() is {seen}"
        return warning(message, f"export {VARIABLE}={','.join(uuids[index] for index in taken)}", VARIABLE)
    return ok(f"{setting}: {len(taken)} of {len(uuids)} GPUs are visible")


def _by_torch(setting: str, seen: int | None) -> Finding:
    """The finding if only torch can say which GPUs are visible."""
    if seen is None:
        return unknown(f"{setting}; neither NVML nor torch says which GPUs it leaves visible")
    if not seen:
        return unset(f"{setting}: torch sees no GPU", VARIABLE)
    return ok(f"{setting}: torch sees {seen}")


def _uuids(facts: Facts) -> list[str] | None:
    """The UUIDs of the GPUs that NVML lists; None if NVML does not give all of them."""
    if not facts.driver.nvml or reason(facts, "gpu.count"):
        return None
    uuids = [gpu.uuid for gpu in facts.gpus if not gpu.is_mig_slice]
    return None if None in uuids else [uuid for uuid in uuids if uuid]


def hidden(facts: Facts) -> bool:
    """CUDA_VISIBLE_DEVICES leaves no GPU visible."""
    value, uuids = facts.environment.get(VARIABLE), _uuids(facts)
    if value is None or value.strip() in HIDES:
        return value is not None
    return bool(uuids) and "MIG-" not in value and not visible(value, uuids or [])[0]

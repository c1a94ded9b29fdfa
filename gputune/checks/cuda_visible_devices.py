"""Does CUDA_VISIBLE_DEVICES name GPUs that exist on this machine?

It lists the GPUs that a program may see, by number or by UUID. CUDA stops at the first entry that names no GPU (-1, a
number too high, a word) and silently ignores the rest; if an entry occurs twice, no GPU is visible. An empty value
hides every GPU, and torch runs on the CPU without an error. Only commas separate: of `0;1` or `0 1` CUDA reads the 0
and silently ignores the rest. torch.cuda.device_count() parses the variable itself and, unlike CUDA, does not recognise
a UUID in capitals.

Source: CUDA C++ Programming Guide, CUDA Environment Variables; torch.cuda.device_count.
"""

import re

from gputune.checks._answers import Facts, Finding, Findings, Measurements, not_applicable, ok, unknown, unset, warning
from gputune.checks._questions import has_gpu, reason
from gputune.checks._remedies import typed
from gputune.facts import cpu_list
from gputune.facts.visible_gpus import VARIABLE, visible

HIDES = ("", "-1", "NoDevFiles")


def check(facts: Facts, measurements: Measurements) -> Findings:
    value = facts.environment.get(VARIABLE)
    if value is None:
        yield ok(f"{VARIABLE} is not set")
    elif facts.libraries.hip:
        yield not_applicable(f"torch {facts.libraries.torch} is built for AMD's GPUs, which gputune does not support")
    elif has_gpu(facts):
        yield _finding(facts, value)
    elif value.strip() in HIDES:
        yield not_applicable(f"{VARIABLE}={value!r} hides GPUs, but there is none to hide")
    else:
        message = f"{VARIABLE}={value!r} names a GPU, but there is none"
        yield warning(message, typed(f"unset {VARIABLE}", note="or ask for a GPU"), VARIABLE)


def _finding(facts: Facts, value: str) -> Finding:
    setting, uuids, seen = f"{VARIABLE}={value!r}", _uuids(facts), facts.libraries.device_count
    if value.strip() in HIDES:
        return warning(f"{setting} hides every GPU from torch", _shown(facts), VARIABLE)
    if (ignored := _ignored(value)) and "MIG-" not in value:
        message = f"{setting}: only commas separate, and CUDA ignores what follows the number in {ignored!r}"
        meant = dict.fromkeys(int(digits) for digits in re.findall(r"[0-9]{1,9}", value))
        left = [index for index in meant if index < len(uuids or facts.gpus)] or _ours(facts)
        return warning(message, f"export {VARIABLE}={','.join(map(str, left))}", VARIABLE)
    if uuids is None or "MIG-" in value:
        return _by_torch(setting, seen)
    taken, refused = visible(value, uuids)
    if refused is not None:
        message = f"{setting}: {refused}, so only {len(taken)} of {len(uuids)} GPUs are visible"
        return warning(message, f"export {VARIABLE}={','.join(map(str, taken or _ours(facts)))}", VARIABLE)
    if "GPU-" in value and seen is not None and seen < len(taken):
        message = f"{setting} names {len(taken)} of {len(uuids)} GPUs, and torch.cuda.device_count() is {seen}"
        return warning(message, f"export {VARIABLE}={','.join(uuids[index] for index in taken)}", VARIABLE)
    return ok(f"{setting}: {len(taken)} of {len(uuids)} GPUs are visible")


def _ignored(value: str) -> str | None:
    """The first entry of a list of numbers in which something follows the number."""
    entries = (entry.strip() for entry in value.split(","))
    return next((entry for entry in entries if re.match(r"[+-]?[0-9]+[^0-9]", entry)), None)


def _by_torch(setting: str, seen: int | None) -> Finding:
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


def _shown(facts: Facts) -> str:
    """A remedy that shows the GPUs, but none that others use."""
    listed, ours = [gpu for gpu in facts.gpus if not gpu.is_mig_slice], _ours(facts)
    if len(ours) == len(listed):
        return f"unset {VARIABLE}"
    return typed(f"export {VARIABLE}={','.join(map(str, ours))}", note="those that nobody else was given or uses")


def _ours(facts: Facts) -> list[int]:
    """The GPUs that may be taken: those that Slurm granted, or else those without another's processes, or else all."""
    listed = [gpu for gpu in facts.gpus if not gpu.is_mig_slice]
    granted, some = facts.scheduler.gpus or "", (facts.scheduler.gpu_count or 0) < len(listed)
    if some and re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", granted):
        numbers = sorted(cpu_list.cpus(granted) & {gpu.index for gpu in listed})
        if numbers:
            return numbers
    return [gpu.index for gpu in listed if not gpu.health.processes] or [gpu.index for gpu in listed]


def hidden(facts: Facts) -> bool:
    value, uuids = facts.environment.get(VARIABLE), _uuids(facts)
    if value is None or value.strip() in HIDES:
        return value is not None
    return bool(uuids) and "MIG-" not in value and not visible(value, uuids or [])[0]

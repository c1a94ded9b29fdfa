"""How many GPUs NVML lists and torch sees, and which torch does not see although nothing hides them."""

import re

from gputune.checks import Finding
from gputune.checks._answers import error
from gputune.checks._promised_gpus import sliced
from gputune.checks._questions import reason
from gputune.checks._remedies import python_of, typed
from gputune.checks._silent_gpus import of_this_job, silence
from gputune.facts import Facts, Gpu
from gputune.facts.visible_gpus import VARIABLE, visible


def listed(facts: Facts) -> int | None:
    """How many GPUs NVML lists for this job; None if it does not say."""
    return None if not facts.driver.nvml or reason(facts, "gpu.count") else len(of_this_job(facts))


def seen(facts: Facts) -> int | None:
    """How many whole GPUs torch sees; None if it sees none, which is gpu_absent's matter, or slices of them."""
    return None if sliced(facts) else facts.libraries.device_count or None


def unseen(facts: Facts) -> Finding | None:
    """The error that torch sees fewer of the GPUs that NVML lists than it may; None if it sees all of these."""
    count, left = seen(facts), _left(facts)
    if count is None or left is None or count >= len(left):
        return None
    matched = any(gpu.torch_index is not None for gpu in left)
    which = [f"GPU {gpu.index}" for gpu in left if gpu.torch_index is None] if matched else []
    message = f"NVML lists {len(left)} GPUs that torch may use, but torch sees {count}"
    command = f"{python_of(facts)} -c 'import torch; torch.cuda.init()'; sudo dmesg | grep NVRM"
    remedy = typed(command, note="the one shows torch's reason, the other, as root on the host, the driver's")
    subject = which[0] if len(which) == 1 else None
    return error(f"{message}{', not ' if which else ''}{', '.join(which)}", remedy, subject)


def _left(facts: Facts) -> list[Gpu] | None:
    """The GPUs that torch may use; None where another check judges that, or it is not known."""
    gpus = [gpu for gpu in of_this_job(facts) if not silence(facts, gpu)]
    value = facts.environment.get(VARIABLE)
    if listed(facts) is None or any(gpu.health.compute_mode is None for gpu in gpus):
        return None
    if value is not None and not re.fullmatch(r"[0-9 ,]+", value):
        return None  # cuda_visible_devices compares UUIDs
    taken = visible(value, [gpu.uuid for gpu in gpus])[0] if value is not None else range(len(gpus))
    return [gpus[index] for index in taken if gpus[index].health.compute_mode != "prohibited"]

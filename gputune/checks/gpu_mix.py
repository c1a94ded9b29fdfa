"""Are all GPUs of this machine of the same kind?

Data-parallel training runs at the pace of the slowest GPU and fits the memory of the smallest, and a profile holds for
one kind. torch numbers the fastest GPU first, nvidia-smi goes by slot, unless CUDA_DEVICE_ORDER=PCI_BUS_ID is set.

Source: CUDA C++ Programming Guide, CUDA Environment Variables.
"""

from collections.abc import Collection

from gputune.checks._answers import Findings, Measurements, counted, gib, no_gpu, not_applicable, ok, unknown, warning
from gputune.checks._questions import data_centre
from gputune.facts import Facts, Gpu, Health
from gputune.facts.gpu import UNKNOWN_NAME
from gputune.facts.visible_gpus import VARIABLE

CHOOSE = "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=%s  # one kind; probe each kind separately"
SAME_SIZE = 1.05
"""The ratio by which torch's and NVML's figures for the same GPU's memory may differ."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    gpus = candidates(facts)
    several = kinds(gpus)
    if not facts.gpus:
        yield no_gpu(facts)
    elif len(facts.gpus) == 1:
        yield not_applicable("there is one GPU")
    elif len(several) > 1:
        largest = ",".join(str(gpu.index) for gpu in max(several, key=len))
        remedy = CHOOSE % largest if facts.driver.nvml else "choose one kind with CUDA_VISIBLE_DEVICES"
        yield warning(f"GPUs of {len(several)} kinds: {', '.join(_kind(kind[0]) for kind in several)}", remedy)
    elif not gpus or any(gpu.name == UNKNOWN_NAME for gpu in gpus):
        yield unknown("not every GPU's name could be read")
    else:
        yield ok(f"{counted(len(gpus), 'GPU')} of one kind: {gpus[0].name}")


def candidates(facts: Facts) -> list[Gpu]:
    """The GPUs to compare: no MIG slices, and if CUDA_VISIBLE_DEVICES is set only the GPUs that it leaves."""
    listed = [gpu for gpu in facts.gpus if gpu.health != Health() or not facts.driver.nvml]
    chosen = VARIABLE in facts.environment
    return [gpu for gpu in listed if gpu.torch_index is not None or not chosen] or listed


def kinds(gpus: Collection[Gpu]) -> list[list[Gpu]]:
    """The GPUs with names, by kind. Few data-centre cards with less memory than their like have lost some."""
    found: list[list[Gpu]] = []
    for gpu in gpus:
        kind = next((kind for kind in found if _alike(gpu, kind[0])), None)
        if kind is not None:
            kind.append(gpu)
        elif gpu.name != UNKNOWN_NAME:
            found.append([gpu])
    for kind in [kind for kind in found if data_centre(kind[0])]:
        same = [other for other in found if other[0].name == kind[0].name]
        if 2 * len(kind) > sum(map(len, same)) > len(kind):
            found = [other for other in found if other not in same]
            found.append([gpu for gpu in gpus if gpu.name == kind[0].name])
    return found


def _kind(gpu: Gpu) -> str:
    return f"{gpu.name} ({gib(gpu.memory_total_bytes)})" if gpu.memory_total_bytes else gpu.name


def _alike(one: Gpu, other: Gpu) -> bool:
    sizes = [gpu.memory_total_bytes for gpu in (one, other) if gpu.memory_total_bytes]
    return one.name == other.name and (len(sizes) < 2 or max(sizes) <= SAME_SIZE * min(sizes))

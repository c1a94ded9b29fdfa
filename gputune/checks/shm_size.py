"""Is /dev/shm large enough for DataLoader workers?

Every batch that a worker makes travels through shared memory: workers x prefetch_factor (2) batches are in flight, and
the consumer holds two more. `gputune probe --dataset` measures what the best setting for that dataset needs. Without
it, one worker for each CPU is assumed, with batches of 64 images of 224 x 224 in float32. Docker and Kubernetes give a
container 64 MiB, in which a worker dies with "bus error" or "unable to allocate shared memory". Give it more with
`docker run --shm-size=8g` (or `--ipc=host`), or in Kubernetes mount an `emptyDir` with `medium: Memory` at /dev/shm;
that counts against the pod's memory limit.

Source: PyTorch's README on Docker; moby's DefaultShmSize; torch.utils.data.DataLoader.
"""

import math
from dataclasses import dataclass

from gputune.advice._evidence import first
from gputune.advice.dataloader_workers import chosen_workers, curve, without_limit
from gputune.checks._answers import Facts, Findings, Measurements, counted, gib, ok, unread, warning
from gputune.checks._remedies import on_host, started, typed
from gputune.knobs.dataloader_prefetch_factor import HELD, PREFETCH, SHARE

MOMENTARY = True
MIB = 1 << 20
BATCH_BYTES = 64 * 3 * 224 * 224 * 4
KUBERNETES = (
    "spec: {volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: %s}}], "
    "containers: [{name: NAME, volumeMounts: [{name: shm, mountPath: /dev/shm}]}]}"
)
LOOK = typed("ls -l /dev/shm", note="remove what no running program needs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The workers that would be best if there were room for them, and the size of /dev/shm that makes the room."""

    workers: int
    batch_bytes: int
    shm_bytes: int


def check(facts: Facts, measurements: Measurements) -> Findings:
    size, free, measured = facts.memory.shm_bytes, facts.memory.shm_free_bytes, need(facts, measurements)
    needed, what, amount = _needed(facts, measured)
    if size is None:
        yield unread(facts, "memory.shm_bytes", "the size of /dev/shm")
    elif size < needed:
        yield warning(f"/dev/shm holds {gib(size)}, and {what}", _remedy(facts, amount), "/dev/shm")
    elif free is not None and free < needed:
        yield warning(f"/dev/shm holds {gib(size)}, of which {gib(free)} is free, and {what}", LOOK, "/dev/shm")
    else:
        yield ok(f"/dev/shm holds {gib(size)}" + (f"; {what}" if measured else ""))


def _needed(facts: Facts, measured: Need | None) -> tuple[int, str, str]:
    """The bytes needed, the sentence that says so, and the size to ask for as docker writes it (270m)."""
    if measured:
        mebibytes = measured.shm_bytes // MIB
        batch = measured.batch_bytes / MIB
        batches = f"{PREFETCH} batches of {f'{batch:.3g}' if batch < 999.5 else f'{batch:.0f}'} MiB in flight"
        best = f"{counted(measured.workers, 'worker')} x {batches}"
        sentence = f"the best setting for the measured dataset, {best}, needs {mebibytes} MiB"
        return measured.shm_bytes, sentence, f"{mebibytes}m"
    workers = facts.cpu.budget
    needed = workers * PREFETCH * BATCH_BYTES
    sentence = f"DataLoader workers for {counted(workers, 'CPU')} would need about {gib(needed)}"
    return needed, sentence, f"{gibibytes(workers)}g"


def need(facts: Facts, measurements: Measurements) -> Need | None:
    """The need of the measured dataset; None where none was measured, or where it loads best without workers."""
    size = first(measurements, "dataset", "batch_bytes")
    if size is None or not curve(measurements, "dataset"):
        return None
    unlimited = without_limit(measurements)
    workers = max(chosen_workers(facts, measurements), unlimited.workers if unlimited else 0)
    largest = int(max(size.samples))
    return Need(workers=workers, batch_bytes=largest, shm_bytes=needed(workers, largest)) if workers else None


def needed(workers: int, batch_bytes: int) -> int:
    """Bytes of /dev/shm, in whole MiB, for the batches in flight and those that the consumer holds."""
    return math.ceil((workers * PREFETCH + HELD) * batch_bytes / SHARE / MIB) * MIB


def gibibytes(workers: int) -> int:
    """The /dev/shm to ask for where no dataset was measured: a power of two, about twice what workers need."""
    return 1 << (workers * PREFETCH * BATCH_BYTES * 2 >> 30).bit_length()


def _remedy(facts: Facts, amount: str) -> str:
    """How to get `amount`, a size as docker writes it (8g, 270m)."""
    if facts.container.kind == "kubernetes":
        size = amount[:-1] + {"g": "Gi", "m": "Mi"}[amount[-1]]
        return typed(KUBERNETES % size, where="in the pod's manifest", note="counts against its memory limit")
    if facts.container.kind in (None, "apptainer"):  # which uses the host's
        command = f"sudo mount -o remount,size={amount.upper()} /dev/shm"
        return on_host(command, changes_node=True, note="until it reboots")
    return started(facts, f"--shm-size={amount}", "", note="or --ipc=host")

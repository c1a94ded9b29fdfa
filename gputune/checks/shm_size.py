"""Is /dev/shm large enough for DataLoader workers?

Every batch that a worker makes travels through shared memory: workers x prefetch_factor (2) x the bytes of a batch must
fit. Counted here are as many workers as CPUs, with batches of 64 images of 224 x 224 in float32. Docker and Kubernetes
give a container 64 MiB, in which a worker dies with "bus error" or "unable to allocate shared memory". Give it more with
`docker run --shm-size=8g` (or `--ipc=host`), or in Kubernetes mount an `emptyDir` with `medium: Memory` at /dev/shm; that
counts against the pod's memory limit.

Source: PyTorch's README on Docker; moby's DefaultShmSize; torch.utils.data.DataLoader.
"""

from gputune.checks._answers import counted, gib, ok, unread, warning
from gputune.checks._common import Facts, Finding, Findings, Measurements

BATCH_BYTES = 64 * 3 * 224 * 224 * 4
PREFETCH = 2
KUBERNETES = (
    "in the pod: volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: %s}}], and in the container: "
    "volumeMounts: [{name: shm, mountPath: /dev/shm}]"
)


def check(facts: Facts, measurements: Measurements) -> Findings:
    yield _finding(facts)


def _finding(facts: Facts) -> Finding:
    size, free = facts.memory.shm_bytes, facts.memory.shm_free_bytes
    if size is None:
        return unread(facts, "memory.shm_bytes", "the size of /dev/shm")
    workers = facts.cpu.budget
    need = workers * PREFETCH * BATCH_BYTES
    held = f"/dev/shm holds {gib(size)}"
    if size < need:
        message = f"{held}, and DataLoader workers for {counted(workers, 'CPU')} would need about {gib(need)}"
        return warning(message, _remedy(facts, need), "/dev/shm")
    if free is not None and free < need:
        message = (
            f"{held}, of which {gib(free)} is free; workers for {counted(workers, 'CPU')} would need about {gib(need)}"
        )
        return warning(message, "ls -l /dev/shm, and remove what no running program needs", "/dev/shm")
    return ok(held)


def _remedy(facts: Facts, need: int) -> str:
    size = 1 << max(0, (need * 2 >> 30).bit_length())  # GiB: about twice the need, a power of two
    if facts.container.kind == "kubernetes":
        return KUBERNETES % f"{size}Gi"
    if facts.container.kind in (None, "apptainer"):  # which uses the host's
        return f"on the host: sudo mount -o remount,size={size}G /dev/shm"
    return f"docker run --shm-size={size}g (or --ipc=host)"

"""Is /dev/shm large enough for DataLoader workers?

Every batch that a worker makes travels through shared memory: workers x prefetch_factor x the bytes of a batch must fit.
Docker and Kubernetes give a container 64 MiB, in which a worker dies with "bus error" or "unable to allocate shared
memory". Give it more with `docker run --shm-size=8g` (or `--ipc=host`), or in Kubernetes mount an `emptyDir` with
`medium: Memory` at /dev/shm; that counts against the pod's memory limit.

Source: PyTorch's README on Docker; moby's DefaultShmSize.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.facts import Facts
from gputune.measurement import Measurement

ENOUGH_BYTES = 1 << 30


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    size = facts.memory.shm_bytes
    if size is None:
        yield Finding(check="shm_size", severity="UNKNOWN", message="the size of /dev/shm could not be read")
    elif size < ENOUGH_BYTES:
        yield Finding(
            check="shm_size",
            severity="WARNING",
            message=f"/dev/shm holds {size / 2**20:.0f} MiB, which DataLoader workers fill with a few batches",
            remedy="docker run --shm-size=8g (or --ipc=host); in Kubernetes mount an emptyDir with medium: Memory at /dev/shm",
            subject="/dev/shm",
        )
    else:
        yield Finding(check="shm_size", severity="OK", message=f"/dev/shm holds {size / 2**30:.1f} GiB")

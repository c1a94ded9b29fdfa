"""The bytes that a batch takes in shared memory on its way from a worker, and its copy to a GPU."""

import ctypes
import hashlib
import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

PAGE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Stands for a batch on the way from a worker."""

    shm_bytes: int
    """The size of its tensors' storages, each of which a worker puts into whole pages of /dev/shm."""
    digest: str


class Described:
    """A collate function that makes the batch with the user's function, and returns only its description."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self.collate = collate

    def __call__(self, samples: Any) -> Description:
        from torch.utils import data

        if self.collate is not data.default_collate:  # it may ask which worker it is in
            return describe(self.collate(samples))
        with _in_own_memory():
            return describe(self.collate(samples))


@contextmanager
def _in_own_memory() -> Iterator[None]:
    """Have default_collate avoid shared memory, as without workers: /dev/shm may be too small for one batch."""
    from torch.utils import data

    before, data.get_worker_info = data.get_worker_info, lambda: None
    try:
        yield
    finally:
        data.get_worker_info = before


def describe(batch: Any) -> Description:
    """Describe a batch by pickling it, as a worker does. Raises TypeError where it cannot be pickled."""
    import torch

    storages: dict[int, int] = {}
    digest = hashlib.blake2b(digest_size=16)

    class Pickler(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
                return NotImplemented
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            if storage.device.type == "cpu" and storage.data_ptr():
                digest.update(ctypes.string_at(storage.data_ptr(), storage.nbytes()))
            return (int, ())

    text = io.BytesIO()
    try:
        Pickler(text).dump(batch)
    except Exception as error:
        raise TypeError(f"a batch cannot be sent from a worker to the training process: {error}") from error
    digest.update(text.getvalue())
    pages = sum(-(-size // PAGE) * PAGE for size in storages.values())
    return Description(shm_bytes=pages, digest=digest.hexdigest())


def to_device(batch: Any, device: str) -> Any:
    """A copy of a batch on a device, as a training loop makes it, with the tensors inside mappings and sequences."""
    if hasattr(batch, "to"):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        return [to_device(value, device) for value in batch]
    return batch

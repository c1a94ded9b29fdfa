"""Torch's default, unless /dev/shm holds no more of the measured dataset's batches."""

from gputune.advice import Choice, Facts, Measurements
from gputune.advice._evidence import choose
from gputune.advice.dataloader_workers import chosen_workers, curve
from gputune.knobs import Value


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    return of_workers(measurements, chosen_workers(facts, measurements))


def of_workers(measurements: Measurements, workers: Value) -> Choice:
    """The choice that goes with a number of workers."""
    if not workers:
        return choose(None, "no workers, so nothing is prefetched")
    if any((params.workers, params.prefetch_factor) == (workers, 1) for params in curve(measurements, "dataset")):
        return choose(1, "/dev/shm holds no more of the dataset's batches", None, "dataset")
    return choose(None, "torch's own 2: more batches ahead make no program faster")

"""The measured rows of training steps and of the accuracy guard: what the benches write, and advice and charts read."""

from collections.abc import Mapping
from dataclasses import dataclass

from . import Measurement, Measurements
from ._evidence import select
from ._rows import Row

BENCH = "training_step"
FAMILIES = ("mlp", "convnet", "transformer", "recurrent")
PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
"""The simplest first. `float32` is what torch does untouched: FP32 matmuls, and convolutions and LSTMs in TF32."""
MIXED = ("bfloat16", "float16")
FLAGS = ("channels_last", "cudnn_benchmark", "fused", "compiled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """The options of a training step; by default torch's."""

    precision: str = "float32"
    channels_last: bool = False
    cudnn_benchmark: bool = False
    fused: bool = False
    compiled: bool = False

    @property
    def simplicity(self) -> tuple[int, ...]:
        """A sort key: how far it is from torch's defaults."""
        flags = [getattr(self, flag) for flag in FLAGS]
        rank = PRECISIONS.index(self.precision)
        return (rank + sum(flags), rank, *flags[::-1])

    @property
    def params(self) -> dict[str, str | int | float | bool]:
        """The keys that a row's params hold; a flag that is off is left out."""
        return {"precision": self.precision, **{flag: True for flag in FLAGS if getattr(self, flag)}}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLoss(Row):
    """A training of the accuracy guard; the row's sample is its final loss."""

    network: str
    precision: str
    seed: int
    steps: int
    first_loss: float | int
    skipped: int | None = None
    """Steps that the GradScaler skipped; None without one."""
    diverged: bool = False


Steps = Mapping[Combination, "Measurement"]


def steps(measurements: Measurements, network: str, stage: str) -> dict[Combination, Measurement]:
    """The rows of a network's steps in one group, by combination; those with an unknown precision are left out."""
    rows = select(measurements, BENCH, "throughput", network=network, stage=stage)
    rows = [row for row in rows if row.params.get("precision") in PRECISIONS]
    flags = [{flag: bool(row.params.get(flag, False)) for flag in FLAGS} for row in rows]
    return {Combination(precision=str(row.params["precision"]), **on): row for row, on in zip(rows, flags, strict=True)}


def families(measurements: Measurements) -> list[str]:
    """The networks whose steps were measured."""
    return [name for name in FAMILIES if steps(measurements, name, "precision")]

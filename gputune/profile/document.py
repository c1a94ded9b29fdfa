"""The profile's types. Settings come from a closed list with typed values: no environment, no paths, no expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.settings import Choice

if TYPE_CHECKING:
    from gputune.facts import Facts

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The hardware and libraries that a choice may rest on. A setting's DEPENDS names fields of this, or `device`."""

    gpu: str | None = None
    """The GPU's name; None for a profile of the CPU."""
    gpu_count: int = 0
    compute_capability: str | None = None
    driver: str | None = None
    torch: str | None = None
    cuda: str | None = None
    cublas: str | None = None
    cudnn: str | None = None
    cpu: str | None = None
    cpu_budget: int | None = None

    @property
    def device(self) -> str | None:
        """The name of the GPU, or of the CPU where there is no GPU."""
        return self.gpu or self.cpu

    def differences(self, other: Fingerprint, fields: Sequence[str]) -> list[str]:
        """Which of `fields` differ, as `device (NVIDIA H200 there, AMD EPYC here)`; `other` is this machine's."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in fields)
        return [
            f"{name} ({there or 'none'} there, {here or 'none'} here)" for name, there, here in pairs if there != here
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One machine's profile. `settings` holds every setting that this version of gputune knows.

    No part of it may be missing from a file, so that one that was cut off is refused.
    """

    schema: int
    created: str
    """UTC, ISO 8601."""
    gputune: str
    fingerprint: Fingerprint
    settings: dict[str, Choice]
    families: dict[str, dict[str, Choice]]
    """The choices that differ from `settings` by kind of network, from measured training steps."""
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]


def fingerprint(facts: Facts, device: str) -> Fingerprint:
    """The fingerprint of `device` ("cuda:0", "cpu") on the machine of `facts`."""
    gpu = facts.device_gpu(device)
    same_model = [other for other in facts.gpus if gpu and other.name == gpu.name and other.torch_index is not None]
    return Fingerprint(
        gpu=gpu.name if gpu else None,
        gpu_count=len(same_model),
        compute_capability=gpu.compute_capability if gpu else None,
        driver=facts.driver.version if gpu else None,
        torch=facts.libraries.torch,
        cuda=facts.libraries.cuda,
        cublas=facts.libraries.cublas,
        cudnn=facts.libraries.cudnn,
        cpu=facts.cpu.model,
        cpu_budget=facts.cpu.budget,
    )

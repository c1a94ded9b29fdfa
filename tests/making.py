"""Profiles and measurements as plain data, and commands run as a user runs them."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from gputune.advice import Choice
from gputune.advice._training_rows import with_precision
from gputune.knobs import all_knobs
from gputune.live.models import ModelKey
from gputune.measurement import Measurement
from gputune.profile import Fingerprint, Profile, Program, save
from gputune.search.combination import Combination

H200 = Fingerprint(
    gpu="NVIDIA H200", gpu_count=1, compute_capability="9.0", driver="580.159.04", torch="2.11.0+cu130", cuda="13.0",
    cublas="13.1.0", cudnn="9.19.0", cpu="Intel(R) Xeon(R) Platinum 8468", cpu_budget=16,
)  # fmt: skip

ELSEWHERE = replace(
    H200,
    gpu="NVIDIA A100-SXM4-80GB",
    compute_capability="8.0",
    torch="2.10.0+cu128",
    cpu="a CPU of another machine",
    cpu_budget=3,
)
"""A machine that no test runs on."""

CHOSEN: dict[str, Any] = {
    "amp_dtype": "bfloat16",
    "channels_last": True,
    "compile": True,
    "cudnn_benchmark": True,
    "cudnn_tf32": True,
    "dataloader_pin_memory": True,
    "dataloader_prefetch_factor": 4,
    "dataloader_workers": 8,
    "dimension_multiple": {"bfloat16": 8, "tf32": 4, "float32": 2},
    "expandable_segments": True,
    "fused_optimizer": True,
    "matmul_precision": "tf32",
    "omp_threads": 3,
    "sdpa_backend": "flash",
}
"""Values of a profile's settings, none of which is torch's default but cudnn_tf32's. A new setting need not be here."""

_READ_BY_GPUTUNE = {"NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"}.union(
    *(getattr(setting, "NAMES", ()) for setting in all_knobs().values())
)


def choices(values: Mapping[str, Any]) -> dict[str, Choice]:
    return {name: Choice(value=value, reason="because it was faster") for name, value in values.items()}


def profile(
    values: Mapping[str, Any] = CHOSEN,
    fingerprint: Fingerprint = H200,
    families: Mapping[str, Mapping[str, Any]] | None = None,
    **more: Any,
) -> Profile:
    return Profile(
        schema=1,
        created="2026-11-21T12:00:00Z",
        gputune="0.1.0",
        fingerprint=fingerprint,
        settings=choices(values),
        families={kind: choices(own) for kind, own in (families or {}).items()},
        **{"measurements": (), "findings": (), "gaps": (), **more},
    )


def program(entry: str = "train.py", **more: Any) -> Program:
    """A script of one ResNet that trained faster in bfloat16, measured at noon."""
    usual: dict[str, Any] = {
        "created": "2026-11-21T12:00:00Z",
        "fingerprint": H200,
        "models": (ModelKey(class_name="ResNet", digest="0123456789abcdef"),),
        "input_shapes": ((64, 3, 224, 224), (64,)),
        "world_size": 1,
        "settings": choices({"amp_dtype": "bfloat16", "matmul_precision": "tf32"}),
        "by_numerics": {
            "exact": {},
            "tf32": {"matmul_precision": "tf32"},
            "mixed": {"amp_dtype": "bfloat16", "matmul_precision": "tf32"},
        },
        "measurements": (row("program", "throughput", 1.0), row("program", "throughput", 1.5, amp_dtype="bfloat16")),
    }
    return Program(entry=entry, **usual | more)


def written(folder: Path, made: Profile) -> str:
    save(made, folder / "profile.yaml")
    return str(folder / "profile.yaml")


def executable(path: Path, text: str) -> Path:
    """A program at `path`, from the text of its script."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def on_path(folder: Path) -> str:
    """A PATH on which `folder` comes first, with a program `gputune` in it: this Python's."""
    executable(folder / "gputune", f'#!/bin/sh\nexec {sys.executable} -m gputune "$@"\n')
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until `true()` holds, which must be within `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def on_a_full_disk(
    folder: Path, name: str, words: str, env: Mapping[str, str], old: str = "old"
) -> subprocess.CompletedProcess[str]:
    """`gputune WORDS` in a folder on a full disk where the file `name` holds `old`; then stdout lists the files and
    shows that one.
    """
    script = f"""
        mount -t tmpfs -o size=16k small {folder} || exit
        cd {folder} && echo {shlex.quote(old)} > {name} && head -c 20000 /dev/zero > filler 2>/dev/null
        {sys.executable} -m gputune {words}; code=$?
        ls -A; cat {name}; exit $code
    """
    done = command(["unshare", "-m", "sh", "-c", script], env)
    if not done.stdout:  # which lists the files even after a crash
        pytest.skip(f"no private mounts here: {done.stderr.strip()[-200:]}")
    return done


def row(bench: str, metric: str, rate: float, device: str = "cuda:0", **params: Any) -> Measurement:
    """Twelve samples, within 1 % of `rate`."""
    samples = tuple(rate * (1 + 0.001 * (number % 10)) for number in range(12))
    return Measurement(bench=bench, metric=metric, unit="TFLOP/s", samples=samples, params=params, device=device)


def steps_with(precision: str = "float32", **flags: bool) -> Combination:
    """The combination of a reference network's steps in a precision, with the flags that are on."""
    return with_precision(Combination.of({name: True for name, on in flags.items() if on}), precision)


def steps(network: str, rates: Mapping[Combination, float], stage: str = "precision") -> list[Measurement]:
    """Training steps of a network, in batches of 64, at these rates."""
    fixed: dict[str, Any] = {"network": network, "batch": 64, "stage": stage}
    return [replace(row("training_step", "throughput", rate), params=fixed | one.values) for one, rate in rates.items()]


def precisions(network: str, **rates: float) -> list[Measurement]:
    """Training steps of a network without images in each precision."""
    return steps(network, {steps_with(precision): rate for precision, rate in rates.items()})


def final_loss(network: str, precision: str, loss: float, seed: int = 0, **more: Any) -> Measurement:
    """The loss that the accuracy guard measured after training from a loss of 2."""
    params = {"network": network, "precision": precision, "seed": seed, "steps": 60, "first_loss": 2.0, **more}
    return Measurement(
        bench="training_step", metric="final_loss", unit="1", samples=(loss,), params=params, device="cuda:0"
    )


def final_losses(network: str, *exact: float, **others: float) -> list[Measurement]:
    """The final losses of FP32 from each seed, and of other precisions from the first seed."""
    return [
        *(final_loss(network, "float32", loss, seed) for seed, loss in enumerate(exact)),
        *(final_loss(network, precision, loss) for precision, loss in others.items()),
    ]


def environ(**variables: str) -> dict[str, str]:
    """This process's environment without what gputune reads, and with `variables`. Warnings of torch's own are off.
    inductor exports its cache's folder, in whichever test compiles first.
    """
    read = {*_READ_BY_GPUTUNE, "TORCHINDUCTOR_CACHE_DIR"}
    ours = {name for name in os.environ if name.startswith("GPUTUNE_") or name in read}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "PYTHONWARNINGS": "ignore", **variables}


def before_others(folder: Path) -> str:
    """A PYTHONPATH on which `folder` comes first."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def python(*arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run this Python, for at most two minutes."""
    return command([sys.executable, *arguments], env, **options)


def serving(parent: str = "") -> list[list[str]]:
    """The command lines of running bench processes, of all parents or of the one with this pid."""
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if "gputune.bench_process.serve" in line and (not parent or parent in line)]


def gputune(*arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    return python("-m", "gputune", *arguments, env=env, **options)


GLOO_ABORTS = ("terminate called without an active exception", "failed (exitcode: -6)")
"""What a rank, or torchrun of it, says where gloo's threads abort it as it exits, with gputune and without (torch 2.13:
2 and 4 of 80 jobs, four at a time on two CPUs).
"""


def not_aborted(once: Callable[[], subprocess.CompletedProcess[str]]) -> subprocess.CompletedProcess[str]:
    """Run a program of several ranks; one that torch itself aborts as it exits is run again, up to twice."""
    done = once()
    for _ in range(2):
        if any(words in done.stderr for words in GLOO_ABORTS):
            done = once()
    return done


def command(
    words: Sequence[str], env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    given = environ() if env is None else env
    return subprocess.run(words, env=given, capture_output=True, text=True, timeout=120, check=False, **options)

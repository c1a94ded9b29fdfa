"""How fast each back end of `scaled_dot_product_attention` is, against the one that torch itself would take.

Forward and backward together, of 16 heads, by dtype, head size, sequence length, and with or without the causal mask. A
back end that has no kernel for the inputs, or no memory, is a gap.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import product
from typing import Any

from gputune.advice.sdpa_backend import Workload
from gputune.bench_process import Budget, Context
from gputune.benches._errors import out_of_memory, synchronize
from gputune.benches._timing import Arm, Metric, interleave, shared_out
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.search.rounds import against_first

SECONDS = {"cuda": {"standard": 5.1, "thorough": 60}}
LEAST_SECONDS = {"cuda": 5.1}
"""On an H200 first calls take 1.4 to 2.4 s, and twelve rounds at both shapes of the standard budget the rest."""
RANK = 6

FACT = "bench.attention"
HEADS = 16
BATCH = {1024: 4, 4096: 2, 16384: 1}
"""By sequence length."""
BACKENDS = {"default": "", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
"""torch's name (`SDPBackend`) of each; the default is torch's own choice and the baseline."""
Refused = Counter[tuple[str, str]]
"""At how many shapes a back end was not measured, by back end and reason."""
TIME_RAN_OUT = ("the budget", "ran out")


class Shape(Workload):
    @property
    def size(self) -> tuple[int, int, int, int]:
        return BATCH[self.length], HEADS, self.length, self.head

    @property
    def tflop(self) -> float:
        """TFLOP of two matmuls forward and five backward, halved by the causal mask."""
        forward = 4 * BATCH[self.length] * HEADS * self.length**2 * self.head
        return 3.5 * forward / (2 if self.causal else 1) / 1e12


def needs(facts: Facts, device: str) -> str | None:
    return None if device.startswith("cuda") else "attention's back ends are a GPU's"


def measure(context: Context) -> Iterator[Measurement | Gap]:
    shapes = groups(context.dtypes, context.budget)
    if not shapes:
        yield Gap(fact=FACT, reason="the device multiplies neither bfloat16 nor float16 natively")
    refused: Refused = Counter()
    end = time.monotonic() + context.seconds
    for shape in shapes:  # once, untimed: the first call of cuDNN in a process takes 1.4 to 2.4 s on an H200
        _refusal(context, Arm(params=shape.params, run=step_at(context, shape), work=shape.tflop))
    for shape, seconds in shared_out(shapes, end - time.monotonic(), lambda shape: 1):
        if seconds > 0:
            yield from _group(context, shape, seconds, refused)
        else:
            refused[TIME_RAN_OUT] += 1
    for (backend, why), count in refused.items():
        yield Gap(fact=FACT, reason=f"{backend} {why} at {count} of {len(shapes)} shapes")


def groups(dtypes: tuple[str, ...], budget: Budget) -> list[Shape]:
    mixed = [dtype for dtype in ("bfloat16", "float16") if dtype in dtypes]
    if budget == "thorough":
        every = product(mixed, (64, 128), BATCH, (True, False))
    else:
        every = product(mixed[:1], (64, 128), (4096,), (True,))
    return [Shape(dtype=dtype, head=head, length=length, causal=causal) for dtype, head, length, causal in every]


def _group(context: Context, shape: Shape, seconds: float, refused: Refused) -> list[Measurement]:
    import torch

    context.say(f"{shape.dtype} head {shape.head} length {shape.length}{' causal' if shape.causal else ''}")
    if context.cuda:
        torch.cuda.empty_cache()  # the shape before left blocks that do not fit this one
    end = time.monotonic() + seconds
    step = step_at(context, shape)
    arms: list[Arm] = []
    for backend in BACKENDS:
        arm = Arm(params={**shape.params, "backend": backend}, run=step, work=shape.tflop)
        missing = backend != "default" and _member(backend) is None
        why = "is no choice in this torch" if missing else _refusal(context, _forced(arm, backend))
        if why:
            refused[backend, why] += 1
        else:
            arms.append(arm)
        if not arms:
            return []
    rows = interleave(context, against_first(arms), end - time.monotonic(), Metric("attention", "TFLOP/s"))
    if not rows:
        refused[TIME_RAN_OUT] += 1
    return rows


def step_at(context: Context, shape: Shape) -> Any:
    """One forward and backward pass; the gradients are returned and not accumulated."""
    import torch

    generator = torch.Generator(device=context.device).manual_seed(0)
    randn = partial(torch.randn, shape.size, device=context.device, generator=generator)
    q, k, v, gradient = (randn(dtype=getattr(torch, shape.dtype)) for _ in range(4))
    inputs = tuple(tensor.requires_grad_() for tensor in (q, k, v))

    def step() -> Any:
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=shape.causal)
        return torch.autograd.grad(out, inputs, gradient)

    return step


def _member(backend: str) -> Any:
    """Torch's `SDPBackend` of a back end; None where this torch has none: the choice came with 2.3, cuDNN later."""
    try:
        from torch.nn.attention import SDPBackend
    except ImportError:
        return None
    return getattr(SDPBackend, BACKENDS[backend], None)


def _forced(arm: Arm, backend: str) -> Arm:
    """The arm, with torch held to one back end around each block: doing so around each call would slow short ones."""
    if backend == "default":
        return arm
    from torch.nn.attention import sdpa_kernel

    held = ExitStack()

    def before() -> None:
        held.enter_context(sdpa_kernel(_member(backend)))

    arm.before, arm.after = before, held.close
    return arm


def _refusal(context: Context, arm: Arm) -> str | None:
    """Why the arm cannot run, found by running it once. Raises an error that is no refusal, such as one of CUDA's."""
    arm.before()
    try:
        arm.run()
        synchronize(context)
    except RuntimeError as error:
        return refused_because(error)
    finally:
        arm.after()
    return None


def refused_because(error: RuntimeError) -> str:
    if out_of_memory(error):
        return "ran out of memory"
    if any(words in str(error) for words in ("No available kernel", "No viable backend", "cuDNN")):
        return "has no kernel for the inputs"
    raise error

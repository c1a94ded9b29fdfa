"""A program that factorises matrices in its loss keeps torch's FP32 matmuls."""

import json
import sys
from typing import Any

import pytest
import torch
from hands_on import mlp, rooted
from making import command, environ
from torch import nn

from gputune.knobs import amp_dtype
from gputune.live.advice import Advice, TunedProgram
from gputune.live.finding import ModelFinder
from gputune.live.models import key
from gputune.live.nets.linear_algebra import PASSES, is_behind
from gputune.live.payload import Payload
from gputune.runtime.environment import SHIM

LINALG = torch.linalg
Y = torch.arange(6.0)


def kernel(x: Any) -> Any:
    return torch.exp(-torch.cdist(x, x).square()) + 0.1 * torch.eye(len(x))


def orthogonal(x: Any) -> Any:
    return x @ nn.init.orthogonal_(nn.Linear(3, 3).weight)


def spectral(x: Any) -> Any:
    return nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))(x)


def clipped(x: Any) -> Any:
    nn.utils.clip_grad_norm_([nn.Parameter(x.detach())], 1.0)
    return x.square()


def lbfgs(x: Any) -> Any:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.LBFGS([weight])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x.detach() @ weight).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return (x @ weight).square()


class Solving(nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return LINALG.solve(kernel(x), Y)


FACTORISING: dict[str, Any] = {
    "an exact Gaussian process": lambda x: torch.cholesky_solve(Y[:, None], LINALG.cholesky(kernel(x))),
    "a determinant": lambda x: torch.logdet(kernel(x)),
    "an inverse": lambda x: LINALG.inv(kernel(x)) @ Y,
    "a pseudo-inverse": LINALG.pinv,
    "QR": lambda x: LINALG.qr(x).R,
    "eigenvalues": lambda x: LINALG.eigvalsh(kernel(x)),
    "singular values": LINALG.svdvals,
    "LU": lambda x: LINALG.lu_factor(kernel(x)).LU,
    "least squares": lambda x: LINALG.lstsq(x, Y[:, None]).solution,
    "a triangular solution": lambda x: LINALG.solve_triangular(kernel(x).tril(), Y[:, None], upper=False),
    "a forward that solves": Solving(),
    "a normal distribution": lambda x: torch.distributions.MultivariateNormal(Y, kernel(x)).log_prob(Y + 1),
}
OTHERS: dict[str, Any] = {
    "a norm": LINALG.norm,
    "a norm of vectors": lambda x: LINALG.vector_norm(x, dim=1),
    "distances": torch.cdist,
    "orthogonal initialisation": orthogonal,
    "spectral normalisation": spectral,
    "clipping of gradients": clipped,
    "LBFGS": lbfgs,
}


def loss_of(compute: Any) -> Any:
    torch.manual_seed(0)
    x = torch.rand(6, 3, requires_grad=True)
    return (compute(x, x) if compute is torch.cdist else compute(x)).sum()


@pytest.mark.parametrize("compute", FACTORISING.values(), ids=FACTORISING)
def test_what_factorises_is_found_in_the_graph_of_the_loss(compute: Any) -> None:
    assert is_behind([loss_of(compute)])


@pytest.mark.parametrize("compute", OTHERS.values(), ids=OTHERS)
def test_norms_initialisation_and_optimizers_do_not_count(compute: Any) -> None:
    assert not is_behind([loss_of(compute)])


def test_a_function_that_is_called_like_one_does_not_count() -> None:
    class LinearSolve(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0] * 2

    assert not is_behind([loss_of(LinearSolve.apply)])


@pytest.mark.parametrize("factorises", [True, False])
def test_the_watched_step_tells_it_and_mixed_precision_stays_off(factorises: bool) -> None:
    model, finder = mlp(), ModelFinder("cpu")
    finder.start()
    out = model(torch.rand(6, next(model.parameters()).shape[1]))
    (torch.logdet(kernel(out)) if factorises else out.square().sum()).backward()
    finder.stop()
    root = rooted(model, torch.optim.Adam(model.parameters()))
    root.features = finder.features
    found = amp_dtype.obstacle(root, "bfloat16")
    assert ("linear algebra" in finder.features) is factorises
    assert (found is not None and "factorises" in found.why) is factorises


PROGRAM = """
import sys, torch
x = torch.rand(6, 3)
weight = torch.nn.Parameter(torch.ones(3))
def step(factorises):
    z = x * weight
    loss = torch.logdet(z @ z.T + torch.eye(6)) if factorises else (z @ z.T).sum()
    {gradients}
{steps}
print(torch.get_float32_matmul_precision())
"""
BACKWARD, GRAD = "loss.backward()", "torch.autograd.grad(loss, weight)"


def ran(steps: str, gradients: str = BACKWARD) -> tuple[str, str, dict[str, Any]]:
    """The precision at the end, gputune's line, and the row."""
    payload = '{"settings":{"matmul_precision":"tf32"}}'
    env = environ(GPUTUNE_APPLY=payload, GPUTUNE_REPORT="json", PYTHONPATH=SHIM, CUDA_VISIBLE_DEVICES="")
    done = command([sys.executable, "-c", PROGRAM.format(steps=steps, gradients=gradients)], env)
    assert done.returncode == 0, done.stderr
    *said, report = done.stderr.splitlines()
    return done.stdout.strip(), "".join(said), json.loads(report)["gputune"]["settings"][0]


@pytest.mark.slow
class TestFlagsAlone:
    @pytest.mark.parametrize("gradients", [BACKWARD, GRAD])
    def test_tf32_is_off_after_a_loss_that_factorises_and_one_line_says_so(self, gradients: str) -> None:
        level, said, row = ran("for _ in range(3): step(True)", gradients)
        assert level == "highest"
        assert said.startswith(
            "gputune: matmul_precision tf32 was turned off: the loss factorises matrices (LinalgSlogdet)"
        )
        assert said.endswith('call torch.set_float32_matmul_precision("high") in the script.')
        assert (row["status"], row["after"]) == ("skipped", "ieee")

    def test_another_loss_keeps_it(self) -> None:
        level, said, row = ran("for _ in range(3): step(False)")
        assert (level, said, row["status"]) == ("high", "", "applied")

    def test_a_later_loss_among_the_first_passes_is_seen(self) -> None:
        assert ran("for number in range(4): step(number == 3)")[0] == "highest"

    def test_torch_is_as_it_was_after_the_first_passes(self) -> None:
        steps = f"before = torch.autograd._make_grads\nfor _ in range({PASSES}): step(False)\n"
        level, _, row = ran(f"{steps}assert torch.autograd._make_grads is before.__wrapped__\nstep(True)")
        assert (level, row["status"]) == ("high", "applied")

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_program_that_asks_for_tf32_has_it(self, when: str) -> None:
        ask = 'torch.set_float32_matmul_precision("high")'
        steps = f"{ask}\nstep(True)" if when == "before" else f"step(True)\n{ask}\nstep(True)"
        level, said, row = ran(steps)
        assert level == "high"
        assert (said == "", row["status"]) == ((True, "changed-later") if when == "before" else (False, "skipped"))


TRAINED = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.rand(6, 3)
for number in range(6):
    z = model(x)
    kernel = z @ z.T + torch.eye(6)
    (torch.logdet(kernel) if number >= {first} else kernel.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.get_float32_matmul_precision())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("first", "level"), [(0, "highest"), (3, "highest"), (6, "high")])
def test_an_entry_of_a_profile_sets_tf32_as_long_as_no_loss_factorises(first: int, level: str) -> None:
    """From the step `first` on the loss factorises: from the watched one, from one with TF32, or never."""
    identity = key(nn.Linear(3, 3)).identity
    program = TunedProgram(entry="-c", models=(identity,), settings={"matmul_precision": "tf32"})
    payload = Payload(settings={}, advice=Advice(device="cpu", programs=(program,)))
    env = environ(GPUTUNE_APPLY=payload.text, GPUTUNE_REPORT="1", PYTHONPATH=SHIM, CUDA_VISIBLE_DEVICES="")
    done = command([sys.executable, "-c", TRAINED.format(first=first)], env)
    assert (done.returncode, done.stdout) == (0, f"{level}\n"), done.stderr
    assert ("matmul_precision ieee: skipped" in done.stderr) is (first == 3)
    assert ("matmul_precision None: skipped (torch), the loss factorises matrices" in done.stderr) is (first == 0)

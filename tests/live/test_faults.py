"""Whether an exception in a model's call may be a setting's, by torch's own words, or is the program's."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from asserting import has_length, is_laid_out, raises_itself, same_dtype
from torch import nn

from gputune.knobs.compile import BackwardFailed
from gputune.live.faults import is_the_programs, may_be_a_settings

HALF = torch.bfloat16
X, HALVES = torch.ones(4), torch.ones(4, dtype=HALF)
ALL = ("amp_dtype", "channels_last", "compile", "inference_mode")
IMAGES = torch.ones(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
NORM = nn.BatchNorm1d(4)


class Own(RuntimeError):
    """Derived from what torch raises."""


def raised(function: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as found:  # noqa: PT011 - which one is asked
        function()
    return found.value


def own() -> None:
    raise RuntimeError("expected scalar type Float but found BFloat16")


def derived() -> None:
    raise Own("expected dtype Float")


def another_from_torchs() -> None:
    try:
        X @ HALVES
    except RuntimeError as error:
        raise RuntimeError("the dtype is wrong") from error


def torchs_again() -> None:
    try:
        X @ HALVES
    except RuntimeError as error:
        raise error


def within_a_context() -> None:
    with torch.no_grad():
        X @ HALVES


OF_SETTINGS = {
    "an operator": lambda: X @ HALVES,
    "an operator in torch's module": lambda: nn.Linear(4, 4)(HALVES),
    "view": lambda: IMAGES.view(-1),
    "not implemented": lambda: torch.linalg.inv(torch.eye(2, dtype=HALF)),
    "an assert on a dtype": lambda: same_dtype(X, HALVES),
    "an assert on a layout": lambda: is_laid_out(IMAGES),
    "torch's again": torchs_again,
    "within a context": within_a_context,
}
THE_PROGRAMS = {
    "raise": own,
    "derived": derived,
    "from torch's": another_from_torchs,
    "an assert on a length": lambda: has_length(X, 3),
    "a raised AssertionError": lambda: raises_itself(X),
    "a key": lambda: {}["dtype"],
    "an index": lambda: list(X)[4],
    "a shape": lambda: nn.Linear(3, 3)(X),
    "one value in a batch": lambda: NORM(torch.ones(1, 4)),
    "an index of an embedding": lambda: nn.functional.embedding(torch.tensor([9]), torch.ones(2, 2)),
    "dtypes that no setting brings in": lambda: torch.zeros(2).double() @ torch.zeros(2),
    "such a dtype and half precision": lambda: torch.zeros(4).double() @ HALVES,
    "torch's check of the program's condition": lambda: torch._assert(len(X) == 3, "short batch"),
}


@pytest.mark.parametrize("name", OF_SETTINGS)
def test_what_torch_says_of_a_dtype_or_a_layout_may_be_a_settings(name: str) -> None:
    assert may_be_a_settings(raised(OF_SETTINGS[name]), ALL)


@pytest.mark.parametrize("name", THE_PROGRAMS)
def test_anything_else_is_the_programs(name: str) -> None:
    assert not may_be_a_settings(raised(THE_PROGRAMS[name]), ALL)


@pytest.mark.parametrize(
    ("name", "setting"),
    [("an operator", "channels_last"), ("view", "amp_dtype"), ("an assert on a layout", "amp_dtype"), ("view", None)],
)
def test_what_no_setting_that_is_on_explains_is_the_programs(name: str, setting: str | None) -> None:
    assert not may_be_a_settings(raised(OF_SETTINGS[name]), [setting] if setting else [])


def test_a_failed_rehearsal_is_a_settings_and_memory_that_ran_out_is_not() -> None:
    assert may_be_a_settings(BackwardFailed("in its backward pass"), ALL)
    assert not may_be_a_settings(torch.cuda.OutOfMemoryError("CUDA out of memory: stride"), ALL)


def test_so_is_whatever_the_compiler_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler: Any = ModuleType("torch._dynamo.exc")
    compiler.TorchDynamoException = type("TorchDynamoException", (RuntimeError,), {})
    monkeypatch.setitem(sys.modules, "torch._dynamo.exc", compiler)
    assert may_be_a_settings(type("BackendCompilerFailed", (compiler.TorchDynamoException,), {})("no C compiler"), ALL)


def test_whose_frame_raised_it() -> None:
    assert is_the_programs(raised(own))
    assert not is_the_programs(raised(lambda: nn.Linear(3, 3)(X)))
    assert not is_the_programs(ValueError())

"""The real packages, each imported once: every test here runs in a process of its own, forked from the one that
imported it.

So each has torch's flags, and the frameworks' singletons, as they are at the start.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from making import profile

from gputune.host import Host
from gputune.profile import Fingerprint
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.tuning import Tuning, apply

USERS = (
    "ACCELERATE_MIXED_PRECISION", "GPUTUNE_APPLY", "GPUTUNE_DISABLE", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS",
    "PL_TRAINER_PRECISION",
)  # fmt: skip
PATIENCE_SECONDS = 180


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool:
    names = pyfuncitem._fixtureinfo.argnames
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_SECONDS)
        if "torch" in sys.modules:  # threads of a parent that has computed are not forked, but would be waited for
            sys.modules["torch"].set_num_threads(1)
        try:
            pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
            fault = ""
        except BaseException:
            fault = traceback.format_exc()
        os.write(writer, fault.encode()[-60_000:])
        os._exit(1 if fault else 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        fault = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        pytest.fail(fault or f"its process ended with {code}", pytrace=False)
    return True


@pytest.fixture(autouse=True)
def _nothing_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in USERS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def here() -> Fingerprint:
    return local_fingerprint(Host())


@pytest.fixture
def applied(here: Fingerprint) -> Callable[..., Tuning]:
    return lambda **values: apply(profile(values, here))


@pytest.fixture
def flags() -> Callable[[], dict[str, Any]]:
    """torch's flags as they read now, by the older getters too, which raise where torch's two views disagree."""

    def read() -> dict[str, Any]:
        import torch

        return {
            "level": torch.get_float32_matmul_precision(),
            "matmul": (torch.backends.cuda.matmul.allow_tf32, torch.backends.cuda.matmul.fp32_precision),
            "cudnn": (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.conv.fp32_precision),
            "benchmark": torch.backends.cudnn.benchmark,
        }

    return read


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What torch.compile compiles: its graphs, which then run as they are, without a C compiler's time."""
    import torch
    import torch._dynamo  # seconds, here for all

    made: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        made.append(graph)
        return graph.forward

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **_: real(function, backend=backend))
    return made

"""Attention's first back end is switched and read back, and the others are left."""

import pytest
import torch_child


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("flash", ["flash", "mem_efficient", "math"]),
        ("efficient", ["mem_efficient", "math"]),
        ("math", ["math"]),
        ("cudnn", ["cudnn", "flash", "mem_efficient", "math"]),
    ],
)
def test_what_comes_after_it_stays_on(value: str, on: list[str]) -> None:
    assert (
        torch_child.ask(f"""
from gputune.knobs import sdpa_backend as setting
setting.apply("{value}")
names = ("cudnn", "flash", "mem_efficient", "math")
answer = [name for name in names if getattr(torch.backends.cuda, name + "_sdp_enabled")()]
""")
        == on
    )


@pytest.mark.slow
def test_cudnn_is_put_before_the_others() -> None:
    assert torch_child.ask("""
from gputune.knobs import sdpa_backend as setting
setting.apply("cudnn")
answer = torch._C._get_sdp_priority_order()[:4]
""") == [3, 1, 2, 0]


@pytest.mark.slow
def test_inputs_that_it_refuses_still_run() -> None:
    """On a CPU there is neither efficient nor cuDNN."""
    assert torch_child.ask("""
from gputune.knobs import sdpa_backend as setting
answer = []
for value in ("efficient", "cudnn", "math", "flash"):
    setting.apply(value)
    x = torch.ones(1, 1, 4, 8)
    answer.append(float(torch.nn.functional.scaled_dot_product_attention(x, x, x).mean()))
""") == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "switched",
    [
        "b.enable_math_sdp(False)",
        "b.enable_flash_sdp(False)",
        "b.enable_flash_sdp(False); b.enable_mem_efficient_sdp(False)",
    ],
)
def test_a_program_that_switched_back_ends_itself_keeps_them(switched: str) -> None:
    assert torch_child.ask(f"""
from gputune.knobs import sdpa_backend as setting
b = torch.backends.cuda
{switched}
before = setting._off()
try:
    setting.apply("flash")
except ValueError as error:
    answer = setting.current(), setting.default(), str(error), setting._off() == before
""") == [None, None, "the program has switched back ends of attention itself", True]


@pytest.mark.slow
def test_a_program_that_switched_cudnn_off_reads_as_flash() -> None:
    assert torch_child.ask("""
from gputune.knobs import sdpa_backend as setting
torch.backends.cuda.enable_cudnn_sdp(False)
answer = setting.current(), setting.default()
""") == ["flash", None]


@pytest.mark.slow
def test_cudnn_first_by_torchs_own_doing_is_not_the_programs() -> None:
    """As torch's first call on a GPU of compute capability 9.0 leaves it."""
    assert torch_child.ask("""
from gputune.knobs import sdpa_backend as setting
torch._C._set_sdp_priority_order([3, 1, 2, 0])
answer = [setting.current(), setting.default()]
setting.apply("flash")
answer.append(setting.current())
""") == ["cudnn", "cudnn", "flash"]


@pytest.mark.slow
def test_a_torch_without_an_order_cannot_try_cudnn_first() -> None:
    assert torch_child.ask("""
from gputune.knobs import sdpa_backend as setting
del torch._C._set_sdp_priority_order, torch._C._get_sdp_priority_order
try:
    setting.apply("cudnn")
except ValueError as error:
    answer = [str(error), setting.current()]
setting.apply("flash")
answer.append(setting.current())
""") == ["this torch cannot try cuDNN before the others: that came with 2.6", None, "flash"]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "cudnn_off"), [("2.2.2", None), ("2.4.1+cu121", False)])
def test_an_older_torch_that_tries_flash_first_says_so(version: str, cudnn_off: bool | None) -> None:
    """2.2 has no switch for cuDNN; 2.4 has it, off."""
    assert torch_child.ask(f"""
from gputune.knobs import sdpa_backend as setting
del torch._C._set_sdp_priority_order, torch._C._get_sdp_priority_order
torch.__version__ = "{version}"
if {cudnn_off} is None:
    del torch.backends.cuda.enable_cudnn_sdp, torch.backends.cuda.cudnn_sdp_enabled
else:
    torch.backends.cuda.enable_cudnn_sdp(False)
answer = [setting.current()]
try:
    setting.apply("flash")
except ValueError as error:
    answer.append(str(error))
setting.apply("efficient")
answer.append(setting.current())
""") == [None, "this torch tries flash first by itself", "efficient"]


@pytest.mark.slow
def test_cudas_context_is_not_touched() -> None:
    assert torch_child.ask("""
from gputune.knobs import sdpa_backend as setting
for value in ("flash", "cudnn"):
    setting.apply(value)
answer = setting.current(), torch.cuda.is_initialized()
""") == ["cudnn", False]

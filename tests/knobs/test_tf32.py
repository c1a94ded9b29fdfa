"""Setting TF32 from any state that a program left torch in, with both of torch's interfaces readable afterwards."""

from itertools import product

import pytest
import torch
import torch_child

from gputune.knobs._tf32 import new_interface

NEW = new_interface(torch)
"""Whether the torch here has the newer interface beside the older one (since 2.9)."""

DIRT = {
    "untouched": "",
    "matmul allowed": "torch.backends.cuda.matmul.allow_tf32 = True",
    "matmul high": "torch.set_float32_matmul_precision('high')",
    "matmul medium": "torch.set_float32_matmul_precision('medium')",
    "cudnn forbidden": "torch.backends.cudnn.allow_tf32 = False",
}
NEW_DIRT = {
    "matmul node tf32": "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "matmul node ieee": "torch.backends.cuda.matmul.fp32_precision = 'ieee'",
    "conv node ieee": "torch.backends.cudnn.conv.fp32_precision = 'ieee'",
    "rnn node ieee": "torch.backends.cudnn.rnn.fp32_precision = 'ieee'",
    "cudnn parent tf32": "torch.backends.cudnn.fp32_precision = 'tf32'",
    "cudnn parent ieee": "torch.backends.cudnn.fp32_precision = 'ieee'",
    "conv and rnn nodes ieee": "b = torch.backends.cudnn; b.conv.fp32_precision = b.rnn.fp32_precision = 'ieee'",
    "root tf32": "torch.backends.fp32_precision = 'tf32'",
    "root ieee": "torch.backends.fp32_precision = 'ieee'",
}
EVERY = DIRT | (NEW_DIRT if NEW else {})


@pytest.mark.slow
@pytest.mark.parametrize(("dirt", "matmul", "cudnn"), [*product(EVERY, [True, False], [True, False])])
def test_both_interfaces_read_what_was_set(dirt: str, matmul: bool, cudnn: bool) -> None:
    answer = torch_child.ask(f"""
from gputune.knobs import _tf32
{EVERY[dirt]}
_tf32.set_matmul({matmul})
_tf32.set_cudnn({cudnn})
b = torch.backends
nodes = [b.cuda.matmul, b.cudnn.conv, b.cudnn.rnn] if {NEW} else []
answer = [
    [_tf32.matmul(), _tf32.cudnn()],
    [b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32, torch.get_float32_matmul_precision() != "highest"],
    [node.fp32_precision == "tf32" for node in nodes],
]
""")
    assert answer == [[matmul, cudnn], [matmul, cudnn, matmul], [matmul, cudnn, cudnn] if NEW else []]


@pytest.mark.slow
def test_what_is_so_already_is_not_written() -> None:
    """Writing would fix values that a parent node may still change."""
    answer = torch_child.ask("""
from gputune.knobs import _tf32
def nodes():
    b = torch.backends
    every = [b.cuda.matmul, b.mkldnn.matmul, b.cudnn.conv, b.cudnn.rnn]
    return [node.fp32_precision for node in every] if _tf32.new_interface(torch) else []
before = nodes()
_tf32.set_matmul(False)
_tf32.set_cudnn(True)
answer = before, nodes()
""")
    assert answer[0] == answer[1]


@pytest.mark.slow
@pytest.mark.parametrize(("dirt", "cudnn"), [*product(DIRT, [True, False])])
def test_torchs_own_way_of_changing_a_flag_for_a_while_works_after_it(dirt: str, cudnn: bool) -> None:
    """torch.export goes through it."""
    assert torch_child.ask(f"""
from gputune.knobs import _tf32
{DIRT[dirt]}
_tf32.set_matmul(True)
_tf32.set_cudnn({cudnn})
with torch.backends.cudnn.flags(enabled=True, allow_tf32={not cudnn}):
    pass
answer = [_tf32.matmul(), _tf32.cudnn(), torch.backends.cudnn.allow_tf32]
""") == [True, cudnn, cudnn]


@pytest.mark.slow
@pytest.mark.parametrize("before", ["ieee", "bf16", "tf32"])
def test_a_cpus_matmul_keeps_its_precision(before: str) -> None:
    """torch's older setter moves oneDNN's along with CUDA's."""
    if not NEW:
        pytest.skip("this torch has no node for oneDNN")
    answer = torch_child.ask(f"""
from gputune.knobs import _tf32
torch.backends.mkldnn.matmul.fp32_precision = {before!r}
_tf32.set_matmul(True)
answer = torch.backends.mkldnn.matmul.fp32_precision
""")
    assert answer == before


@pytest.mark.slow
def test_nothing_is_warned_about() -> None:
    assert (
        torch_child.ask("""
import warnings
from gputune.knobs import _tf32
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for allow in (True, False, True):
        _tf32.set_matmul(allow)
        _tf32.set_cudnn(allow)
answer = [str(warning.message) for warning in caught]
""")
        == []
    )

"""TF32 of convolutions and RNNs, which a program may set apart."""

import pytest
import torch_child


@pytest.mark.slow
def test_convolutions_and_rnns_set_apart_are_nobodys_value() -> None:
    answer = torch_child.ask("""
from gputune.knobs import cudnn_tf32 as setting
if hasattr(torch._C, "_get_fp32_precision_getter"):
    torch.backends.cudnn.rnn.fp32_precision = "ieee"
    answer = setting.current()
""")
    assert answer is None

"""cuDNN's own search is not switched on in deterministic mode."""

import pytest
import torch_child


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", ["torch.backends.cudnn.deterministic = True", "torch.use_deterministic_algorithms(True)"]
)
def test_deterministic_mode_wins(mode: str) -> None:
    assert torch_child.ask(f"""
from gputune.knobs import cudnn_benchmark as setting
{mode}
setting.apply(False)
try:
    setting.apply(True)
except ValueError as error:
    answer = str(error), setting.current()
""") == ["deterministic mode is on, and wins", False]

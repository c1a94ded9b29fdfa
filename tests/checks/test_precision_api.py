import pytest
from recorded import found

from gputune.checks import precision_api
from gputune.host import Unreadable

MIX = "PyTorch is checking whether allow_tf32 is enabled, a mix of the legacy and new APIs"


def test_getters_that_raise_are_a_warning():
    [one] = found(precision_api, torch={"api_conflict": MIX})
    assert one.severity == "WARNING"
    assert one.message == f"right after import torch: {MIX}"
    assert "torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True" in one.remedy
    assert "gputune.apply" in one.remedy


@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "cpu-only"])
def test_the_two_agree(machine):
    assert [one.severity for one in found(precision_api, machine)] == ["OK"]


@pytest.mark.parametrize(
    "torch",
    [
        Unreadable("no answer"),
        {"torch": None, "gaps": {"torch": "no answer"}},
        {"api_conflict": None, "gaps": {"api_conflict": "AttributeError: no answer"}},
    ],
)
def test_what_cannot_be_read_is_unknown(torch):
    [one] = found(precision_api, torch=torch)
    assert one.severity == "UNKNOWN"
    assert "no answer" in one.message

from recorded import found

from gputune.checks import precision_api

MIX = "PyTorch is checking whether allow_tf32 is enabled, a mix of the legacy and new APIs"


def test_getters_that_raise_are_a_warning():
    [one] = found(precision_api, torch={"api_conflict": MIX})
    assert one.severity == "WARNING"
    assert one.message == f"right after import torch: {MIX}"
    assert "torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True" in one.remedy
    assert "gputune.apply" in one.remedy

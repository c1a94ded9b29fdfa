"""Whether batches are copied into page-locked memory, for a GPU to fetch."""

from making import row
from recorded import facts_of

from gputune.settings.dataloader_pin_memory import recommend


def test_without_a_gpu_there_is_nothing_to_copy_to() -> None:
    rows = [
        row("dataloader", "throughput", rate, device="cpu", kind="transfer", workers=4, pin_memory=pin)
        for pin, rate in ((True, 9.0), (False, 1.0))
    ]
    choice = recommend(facts_of("cpu-only"), rows)
    assert choice.value is False
    assert "no GPU" in choice.reason

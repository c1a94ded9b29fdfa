"""The allocator's segments: off by itself, and under both names of its variable."""

import pytest
import torch_child

from gputune.knobs.expandable_segments import NAMES, current, environ


def test_both_names_are_exported_alike() -> None:
    """Up to torch 2.9 only the older one is read; from 2.10 on the newer one where the older is not set."""
    on = "expandable_segments:True"
    assert environ(True) == {"PYTORCH_CUDA_ALLOC_CONF": on, "PYTORCH_ALLOC_CONF": on}
    assert environ(False) == {}


@pytest.mark.parametrize(
    ("variables", "value"),
    [
        ({}, False),
        (environ(True), True),
        ({"PYTORCH_ALLOC_CONF": "max_split_size_mb:64,expandable_segments:True"}, True),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "PYTORCH_ALLOC_CONF": "expandable_segments:True"}, False),
    ],
)
def test_it_is_read_back_from_the_variable_that_torch_reads(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], value: bool
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert current() is value


@pytest.mark.slow
def test_reading_it_fixes_nothing() -> None:
    """torch reads the variable when it is first asked for its configuration."""
    assert torch_child.ask("""
import os
from gputune.knobs import expandable_segments
before = expandable_segments.current()
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
answer = before, torch._C._accelerator_getAllocatorSettings()
""") == [False, "expandable_segments:True"]

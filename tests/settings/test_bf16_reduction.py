"""Sums of a split bf16 matmul: torch's default stays unless a profile says otherwise, and the other dtype is left alone."""

from __future__ import annotations

import torch_child
from recorded import facts_of

from gputune.settings import bf16_reduction as setting


def test_a_profile_keeps_torchs_default() -> None:
    choice = setting.recommend(facts_of(), [])
    assert choice.value is setting.default() is True
    assert "not measured" in choice.reason


def test_it_is_set_and_read_back_by_itself() -> None:
    assert torch_child.ask("""
from gputune.settings import bf16_reduction as setting
flags = torch.backends.cuda.matmul
answer = []
for value in (False, True, False):
    setting.apply(value)
    answer.append([setting.current(), flags.allow_bf16_reduced_precision_reduction])
answer.append(flags.allow_fp16_reduced_precision_reduction)
""") == [[False, False], [True, True], [False, False], True]

"""Putting things into the models of a running process, beside the script's own lines."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch_child
from making import environ, gputune, profile, written

from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

CHOICES = {"amp_dtype": "bfloat16", "channels_last": True, "compile": True, "fused_optimizer": True}

SCRIPT = """
import gputune
from contextlib import nullcontext
from torch import nn
torch.compile = lambda function, **_: function
def told(rows):
    return {{row.setting: [row.status, row.why] for row in rows if row.setting in {names!r}}}
tuning = gputune.apply({path!r}, inject=True, numerics={level!r})
class Looks(nn.Linear):
    def forward(self, x):
        output = super().forward(x)
        dtypes.append(str(output.dtype))
        return output
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), Looks(144, 2))
autocast, kwargs = nullcontext, {{}}
{lines}
optimizer = torch.optim.AdamW(model.parameters(), **kwargs)
dtypes = []
for _ in range(4):
    optimizer.zero_grad()
    with autocast():
        loss = model(torch.ones(2, 3, 8, 8)).float().square().mean()
    loss.backward()
    optimizer.step()
answer = {{
    "status": told(gputune.status()), "applied": told(tuning.applied), "dtypes": dtypes,
    "call": type(model._compiled_call_impl).__name__, "fused": optimizer.param_groups[0]["fused"],
    "ranks": {{name: value for name, value in gputune.verify_ranks(tuning).items() if name in {names!r}}},
    "alone": {{name: value for name, value in gputune.verify_ranks().items() if name in {names!r}}},
}}
"""
LINES = """
model = tuning.prepare(model)
autocast, kwargs = tuning.autocast, tuning.optimizer_kwargs()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return written(tmp_path, profile(CHOICES, fingerprint=local_fingerprint(Host())))


def ran(path: str, lines: str, level: str = "mixed") -> Any:
    return torch_child.ask(SCRIPT.format(path=path, lines=lines, level=level, names=tuple(CHOICES)))


@pytest.mark.slow
class TestTuning:
    def test_without_lines_of_the_script_all_is_put_in_and_compared_by_ranks(self, path: str) -> None:
        answer = ran(path, "")
        assert {name: status for name, (status, _) in answer["status"].items()} == dict.fromkeys(CHOICES, "applied")
        assert answer["applied"] == answer["status"]
        assert answer["applied"]["amp_dtype"][1] == "put into Sequential"
        assert answer["dtypes"] == ["torch.float32"] * 2 + ["torch.bfloat16"] * 2
        assert answer["fused"]
        assert answer["alone"] == answer["ranks"] == CHOICES

    def test_what_the_scripts_lines_did_is_not_done_again(self, path: str) -> None:
        answer = ran(path, LINES)
        assert {name: status for name, (status, _) in answer["status"].items()} == dict.fromkeys(CHOICES, "kept-user")
        assert {status for status, _ in answer["applied"].values()} == {"applied"}
        assert "used by the script" in answer["applied"]["amp_dtype"][1]
        assert answer["dtypes"] == ["torch.bfloat16"] * 4
        assert answer["call"] != "Call"

    def test_what_the_script_leaves_is_put_in_beside_its_lines(self, path: str) -> None:
        answer = ran(path, "autocast = tuning.autocast")
        assert answer["status"]["amp_dtype"][0] == "kept-user"
        assert answer["status"]["fused_optimizer"] == ["applied", "put into Sequential"]
        assert answer["applied"]["amp_dtype"] == ["applied", "used by the script"]
        assert answer["applied"]["fused_optimizer"] == ["applied", "put into Sequential"]

    def test_within_a_limit_nothing_is_put_in(self, path: str) -> None:
        answer = ran(path, "", "exact")
        assert answer["alone"] == answer["status"] == {}


@pytest.mark.slow
def test_a_program_tells_at_its_end_what_was_put_in(path: str) -> None:
    code = """
import torch
torch.compile = lambda function, **_: function
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""
    words = ["apply", "--numerics", "mixed", "--skip", "compile", path, "--", sys.executable, "-c", code]
    done = gputune(*words, env=environ(GPUTUNE_REPORT="json", RANK="0"))
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines[0] == "gputune: put into Linear (mlp): amp_dtype bfloat16, fused_optimizer"
    report = json.loads(lines[-1])["gputune"]
    rows = {row["setting"]: row for row in report["settings"]}
    assert (report["rank"], rows["amp_dtype"]["status"], rows["amp_dtype"]["after"]) == (0, "applied", "bfloat16")
    assert rows["channels_last"]["why"] == "it has no 2-d convolutions"

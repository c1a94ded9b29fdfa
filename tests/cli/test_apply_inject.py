"""`gputune apply` and what takes lines of a script: which options choose it, and what is said."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import gputune, refusal
from making import environ, profile, program, written

from gputune.host import Host
from gputune.profile import Fingerprint
from gputune.runtime.local_fingerprint import local_fingerprint

SHOW = [sys.executable, "-c", "import os; print(os.environ.get('GPUTUNE_APPLY'))"]
VALUES = {"amp_dtype": "bfloat16", "cudnn_benchmark": True, "fused_optimizer": True, "matmul_precision": "tf32"}
FAMILIES = {"convnet": {"amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True}}
WAITING = (
    "gputune: not put in: amp_dtype, channels_last, fused_optimizer (measured for: convnet); "
    "--numerics mixed puts that into unchanged scripts\n"
)


@pytest.fixture(scope="module")
def here() -> Fingerprint:
    return local_fingerprint(Host(environ=environ()))


@pytest.fixture
def path(tmp_path: Path, here: Fingerprint) -> str:
    return written(tmp_path, profile(VALUES, here, FAMILIES))


def handed(*options: str, **variables: str) -> tuple[Any, str]:
    done = gputune("apply", *options, "--", *SHOW, env=environ(**variables))
    assert done.returncode == 0
    return (None if done.stdout == "None\n" else json.loads(done.stdout)), done.stderr


class TestLevels:
    @pytest.mark.slow
    def test_by_itself_nothing_is_put_in_and_what_could_be_is_said(self, path: str) -> None:
        payload, said = handed(path)
        assert "advice" not in payload
        assert said == WAITING

    @pytest.mark.slow
    def test_beside_a_tuned_script_it_is_said_of_the_others(self, tmp_path: Path, here: Fingerprint) -> None:
        tuned = program(fingerprint=here)
        path = written(tmp_path, replace(profile(VALUES, here, FAMILIES), programs=(tuned,)))
        assert handed(path)[1] == WAITING.replace("not put in", "not put into scripts that were not tuned")

    @pytest.mark.slow
    def test_what_a_level_leaves_out_of_a_tuned_script_is_said(self, tmp_path: Path, here: Fingerprint) -> None:
        path = written(tmp_path, replace(profile({}, here), programs=(program(fingerprint=here),)))
        assert handed("--numerics", "exact", path)[1] == "gputune: left out by numerics: amp_dtype, matmul_precision\n"

    def test_mixed_puts_it_in_and_says_nothing_yet(self, path: str) -> None:
        payload, said = handed("--numerics", "mixed", path)
        assert payload["advice"]["families"] == FAMILIES
        assert payload["advice"]["device"] == "cpu"
        assert said == ""

    @pytest.mark.slow
    def test_the_environments_level_counts_as_much(self, path: str) -> None:
        payload, said = handed(path, GPUTUNE_NUMERICS="mixed")
        assert payload["advice"]["families"] == FAMILIES
        assert said == ""

    def test_inject_stays_below_mixed(self, path: str) -> None:
        payload, _ = handed("--inject", path)
        assert payload["advice"]["families"] == {"convnet": {"channels_last": True, "fused_optimizer": True}}

    def test_who_named_another_level_is_not_asked(self, path: str) -> None:
        payload, said = handed("--numerics", "tf32", path)
        assert "advice" not in payload
        assert said == "gputune: left out by numerics: amp_dtype\n"


class TestOnlyAndSkip:
    def test_only(self, path: str) -> None:
        payload, said = handed("--only", "cudnn_benchmark, amp_dtype", "--numerics", "mixed", path)
        assert payload["settings"] == {"cudnn_benchmark": True}
        assert payload["advice"]["families"] == {"convnet": {"amp_dtype": "bfloat16"}}
        assert said == ""

    def test_skip(self, path: str) -> None:
        payload, _ = handed("--skip", "cudnn_benchmark,amp_dtype", "--numerics", "mixed", path)
        assert payload["settings"] == {"matmul_precision": "tf32"}
        assert payload["advice"]["families"] == {"convnet": {"channels_last": True, "fused_optimizer": True}}

    def test_what_was_not_asked_for_is_not_waited_for(self, path: str) -> None:
        assert handed("--only", "cudnn_benchmark", path)[1] == ""

    @pytest.mark.parametrize("option", ["--only", "--skip"])
    def test_a_name_that_is_none(self, path: str, option: str) -> None:
        fault = refusal("apply", option, "compile,amp_dtyp", path, "--", "echo", "ran")
        assert fault == f"gputune: {option} amp_dtyp: there is no such setting; did you mean amp_dtype?\n"


class TestDryRun:
    def test_it_prints_and_runs_nothing(self, path: str, tmp_path: Path) -> None:
        done = gputune(
            "apply", "--dry-run", "--numerics", "mixed", path, "--", "touch", str(tmp_path / "ran"),
            env=environ(COLUMNS="200"),
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert not (tmp_path / "ran").exists()
        text = " ".join(done.stdout.split())
        assert "put into each model in its first steps, as measured for its kind" in text
        assert "a convnet" in text
        assert "amp_dtype bfloat16, fused_optimizer, channels_last" in text
        assert "right after import torch" in text

    @pytest.mark.slow
    def test_without_a_command_it_prints_the_same(self, path: str) -> None:
        one, other = gputune("apply", "--dry-run", path), gputune("apply", "--dry-run", path, "--", "false")
        assert (one.returncode, one.stdout) == (other.returncode, other.stdout)
        assert one.stdout.endswith(WAITING.removeprefix("gputune: "))

    def test_a_profile_that_cannot_be_read_is_one_line(self, tmp_path: Path) -> None:
        assert "no-such.yaml" in refusal("apply", "--dry-run", str(tmp_path / "no-such.yaml"), "--", "true")


class TestQuiet:
    @pytest.mark.slow
    def test_nothing_is_said_here_nor_later(self, path: str) -> None:
        assert handed("--quiet", path)[1] == ""
        payload, said = handed("--quiet", "--numerics", "mixed", path)
        assert (payload["advice"]["quiet"], said) == (True, "")

    def test_a_fault_is(self, tmp_path: Path) -> None:
        done = gputune("apply", "--quiet", str(tmp_path / "no-such.yaml"), "--", "echo", "ran")
        assert done.stdout == "ran\n"
        assert done.stderr.endswith("; running echo unchanged\n")


@pytest.mark.slow
def test_dataloaders_only_where_asked_for(tmp_path: Path, here: Fingerprint) -> None:
    path = written(tmp_path, profile({"dataloader_workers": 8, "dataloader_prefetch_factor": 4}, here))
    assert handed(path) == (None, "")
    payload, said = handed("--inject-dataloader", path)
    choices = {"dataloader_prefetch_factor": 4, "dataloader_workers": 8}
    assert (payload["advice"]["loading"]["choices"], said) == (choices, "")

"""What `gputune status` tells: of a real Python below `gputune apply`, and of recorded answers of one on a GPU."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import ELSEWHERE, H200, choices, environ, gputune, profile, program, python, written

from gputune.errors import MeasureError
from gputune.host import Host
from gputune.live import flags
from gputune.profile import Profile
from gputune.runtime.environment import child, digest, plan
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.status import Status, ask, from_answer, programs

READS = {
    "cudnn_tf32": {"value": True, "default": True},
    "matmul_precision": {"value": "tf32", "default": "ieee"},
    "omp_threads": {"value": 7, "default": 16},
    "sdpa_backend": {"fault": flags.failed("sdpa_backend", flags.error_text(AttributeError("no such thing"))).plain},
}
ROW = {
    "setting": "matmul_precision", "before": "ieee", "after": "tf32", "status": "applied", "source": "profile",
    "why": "", "reasons": [],
}  # fmt: skip


def of(errors: dict[str, float] | None = None, override: str | None = None, **reads: Any) -> Status:
    answer = {"torch": "2.11.0", "python": "python", "gpu": "NVIDIA H200", "tf32": True, "rows": [ROW]}
    answer["reads"] = {**READS, **reads}
    return from_answer(answer | ({"errors": errors} if errors else {}), override)


class TestTold:
    def test_each_setting_says_whose_value_it_has(self) -> None:
        assert {row.setting: (row.after, row.status, row.source) for row in of().settings} == {
            "cudnn_tf32": (True, "skipped", "torch"),
            "matmul_precision": ("tf32", "applied", "profile"),
            "omp_threads": (7, "kept-user", "environment"),
            "sdpa_backend": (None, "failed", None),
        }

    @pytest.mark.parametrize(
        ("errors", "override", "effects"),
        [
            # Relative errors as an H200 has them with NVIDIA_TF32_OVERRIDE unset, 0, and 1.
            ({"matmul": 2.9e-4, "conv": 2.9e-4, "conv channels_last": 2.9e-4, "lstm": 2.2e-4}, None, [True] * 4),
            ({"matmul": 1.1e-6, "conv": 4.3e-7, "conv channels_last": 4.3e-7, "lstm": 3e-7}, "0", [False] * 4),
        ],
    )
    def test_errors_tell_whether_a_flag_took_effect(
        self, errors: dict[str, float], override: str | None, effects: list[bool]
    ) -> None:
        found = of(errors, override)
        assert [one.took_effect for one in found.verified] == effects
        assert [one.relative_error for one in found.verified] == list(errors.values())
        assert found.override == override

    def test_a_gpu_without_tf32_is_no_fault(self) -> None:
        answer = {"torch": "2.4", "python": "python", "gpu": "Tesla V100", "tf32": False, "rows": [], "reads": READS}
        [found] = from_answer({**answer, "errors": {"conv": 3e-7}}, None).verified
        assert found.took_effect is None

    def test_tf32_that_runs_although_the_flag_is_off(self) -> None:
        [found] = of({"conv": 2.9e-4}, "1", cudnn_tf32={"value": False, "default": True}).verified
        assert (found.setting, found.value, found.took_effect) == ("cudnn_tf32", False, False)


class TestPrograms:
    def of(self, made: Profile, torch: str = str(H200.torch), **variables: str) -> list[tuple[Any, ...]]:
        environ = child(plan(made, H200, {}), variables)
        return [(one.entry, one.settings, one.differences) for one in programs(environ, torch)]

    def test_what_is_applied_to_each_is_told(self) -> None:
        values = {"dataloader_workers": 4, "fused_optimizer": True}
        made = profile(programs=(program(settings=choices(values)),))
        assert self.of(made) == [("train.py", ("dataloader_workers", "fused_optimizer"), ())]

    def test_another_torch_than_that_which_gputune_apply_saw_is_a_difference(self) -> None:
        made = profile(programs=(program(settings=choices({"fused_optimizer": True})),))
        [(_, _, differences)] = self.of(made, torch="2.13.0")
        assert differences == (f"torch ({H200.torch} there, 2.13.0 here)",)
        assert self.of(profile(programs=(program(),)), torch="2.13.0")[0][2] == ()

    def test_one_of_another_machine_is_there_with_what_differs(self) -> None:
        made = profile({}, programs=(program(fingerprint=ELSEWHERE),))
        [(entry, settings, differences)] = self.of(made)
        assert (entry, settings) == ("train.py", ())
        assert "device (NVIDIA A100-SXM4-80GB there, NVIDIA H200 here)" in differences

    def test_there_is_none_without_a_profile_or_where_gputune_is_switched_off(self) -> None:
        assert programs({}, "2.13.0") == ()
        assert self.of(profile(programs=(program(),)), GPUTUNE_DISABLE="1") == []


class TestDigest:
    APPLIED = {
        "GPUTUNE_APPLY": '{"settings":{"matmul_precision":"tf32","omp_threads":3}}',
        "OMP_NUM_THREADS": "3",
        "PATH": "/bin",
    }

    def test_it_is_the_same_wherever_the_same_was_applied(self) -> None:
        one = digest(self.APPLIED)
        assert one is not None
        assert re.fullmatch("[0-9a-f]{16}", one)
        other = {**self.APPLIED, "RANK": "3", "PATH": "/usr/bin"}
        other["GPUTUNE_APPLY"] = '{ "settings": { "omp_threads": 3, "matmul_precision": "tf32" } }'
        assert digest(other) == one

    @pytest.mark.parametrize(
        "change",
        [
            {"GPUTUNE_APPLY": '{"settings":{"matmul_precision":"ieee","omp_threads":3}}'},
            {"GPUTUNE_APPLY": '{"settings":{"matmul_precision":"tf32"}}'},
            {"GPUTUNE_APPLY": '{"settings":{"matmul_precision":"tf32","omp_threads":3},"torch":"2.12.0"}'},
            {
                "GPUTUNE_APPLY": '{"settings":{"matmul_precision":"tf32","omp_threads":3},"advice":{"device":"cpu",'
                '"general":{"compile":true}}}'
            },
            {"OMP_NUM_THREADS": "1"},
        ],
    )
    def test_it_differs_where_anything_of_it_does(self, change: dict[str, str]) -> None:
        assert digest(self.APPLIED | change) not in (digest(self.APPLIED), None)

    @pytest.mark.parametrize("payload", [None, "", "{}", '{"settings":{}}', "{", "[1]", '"x"', "null"])
    def test_there_is_none_where_nothing_was_applied(self, payload: str | None) -> None:
        assert digest({} if payload is None else {"GPUTUNE_APPLY": payload, "OMP_NUM_THREADS": "3"}) is None

    def test_nor_where_gputune_is_switched_off(self) -> None:
        assert digest({**self.APPLIED, "GPUTUNE_DISABLE": "1"}) is None

    @given(st.text())
    def test_whatever_the_payload_it_is_a_digest_or_none(self, payload: str) -> None:
        assert re.fullmatch("None|[0-9a-f]{16}", str(digest({"GPUTUNE_APPLY": payload})))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    values = {"cudnn_benchmark": True, "matmul_precision": "tf32", "omp_threads": 1, "expandable_segments": True}
    return written(tmp_path_factory.mktemp("here"), profile(values, fingerprint=local_fingerprint(Host())))


@pytest.mark.slow
def test_below_gputune_apply_it_tells_what_was_set_there(path: str) -> None:
    done = gputune("apply", path, "--", sys.executable, "-m", "gputune", "status", "--verify", "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert re.fullmatch("[0-9a-f]{16}", answer["digest"])
    rows = {row["setting"]: row for row in answer["settings"]}
    expected = {
        "cudnn_benchmark": (False, True, "applied", "profile"),
        "cudnn_tf32": (True, True, "skipped", "torch"),
        "expandable_segments": (True, True, "applied", "profile"),
        "matmul_precision": ("ieee", "tf32", "applied", "profile"),
        "omp_threads": (1, 1, "applied", "profile"),
        "sdpa_backend": (None, None, "skipped", "torch"),
    }
    assert expected.keys() <= rows.keys()
    for name, row in expected.items():
        assert tuple(rows[name][field] for field in ("before", "after", "status", "source")) == row, name


@pytest.mark.slow
def test_what_the_user_exported_before_is_the_users(path: str) -> None:
    env = environ(OMP_NUM_THREADS="2", TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="1")
    done = gputune("apply", path, "--", sys.executable, "-m", "gputune", "status", "--json", env=env)
    rows = {row["setting"]: row for row in json.loads(done.stdout)["settings"]}
    assert rows["omp_threads"]["after"] == 2
    assert rows["omp_threads"]["source"] in ("environment", "torch")  # two may be torch's own count too
    assert rows["matmul_precision"]["after"] == "tf32"
    assert rows["matmul_precision"]["source"] == "program"


def test_an_interpreter_without_torch_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    with pytest.raises(MeasureError, match="ImportError: no torch here; name an interpreter that has torch"):
        ask(Host(environ=environ(PYTHONPATH=str(tmp_path), PYTHONSAFEPATH="1")))
    with pytest.raises(MeasureError, match="no-such-python"):
        ask(Host(python="no-such-python"))


@pytest.mark.slow
def test_a_running_program_reports_itself_at_its_end(path: str) -> None:
    code = "import torch; torch.backends.cudnn.benchmark = False; torch.set_num_threads(2)"
    done = gputune("apply", path, "--", sys.executable, "-c", code, env=environ(GPUTUNE_REPORT="1", RANK="5"))
    lines = [line.split(": ", 2) for line in done.stderr.splitlines() if line.startswith("gputune: rank 5, pid ")]
    assert [line[2] for line in lines] == [
        "cudnn_benchmark False: changed-later (program), the program later changed it from True",
        "expandable_segments True: applied (profile), through its environment variable",
        "matmul_precision tf32: applied (profile), right after import torch",
        "omp_threads 2: changed-later (program), the program later changed it from 1",
    ]


@pytest.mark.slow
def test_in_the_program_itself(path: str) -> None:
    code = f"""
import gputune, json, torch
before = len(gputune.status())
tuning = gputune.apply({path!r})
torch.set_float32_matmul_precision("highest")
now = {{row.setting: row for row in tuning.applied}}["matmul_precision"]
print(json.dumps([before, now.before, now.after, now.status, now.source, now.why, len(gputune.status())]))
"""
    answer = json.loads(python("-c", code).stdout)
    why = "the program later changed it from tf32"
    assert answer == [0, "ieee", "ieee", "changed-later", "program", why, 3]

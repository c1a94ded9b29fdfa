"""From a profile to a command's environment: plain data in, plain data out."""

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from making import CHOSEN, H200, profile, row

from gputune import knobs
from gputune.errors import UsageError
from gputune.live import payload
from gputune.profile import Fingerprint, Profile
from gputune.runtime.deciding import Terms
from gputune.runtime.environment import SHIM, Plan, child, exports, limit, plan, task_prolog

PROCESS = {"cudnn_benchmark": True, "cudnn_tf32": True, "matmul_precision": "tf32", "sdpa_backend": "flash"}
THREADS = {"OMP_NUM_THREADS": "3"}
ALLOCATOR = dict.fromkeys(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"), "expandable_segments:True")


def status(planned: Plan) -> dict[str, str]:
    return {row.setting: row.status for row in planned.applied}


def why(planned: Plan, name: str) -> str:
    return next(row.why for row in planned.applied if row.setting == name)


def handed(planned: Plan) -> dict[str, object]:
    values: dict[str, object] = json.loads(planned.payload)["settings"]
    return values


def test_every_setting_of_the_profile_has_a_row_in_its_order() -> None:
    planned = plan(profile(), H200, {})
    assert [row.setting for row in planned.applied] == list(CHOSEN)


def test_launch_settings_become_variables_and_the_others_travel_as_canonical_json() -> None:
    planned = plan(profile(), H200, {})
    assert (planned.environ, why(planned, "omp_threads")) == (THREADS | ALLOCATOR, "OMP_NUM_THREADS=3")
    assert len(planned.payload) < payload.MOST_BYTES
    assert planned.payload == (
        '{"settings":{"cudnn_benchmark":true,"cudnn_tf32":true,"expandable_segments":true,'
        '"matmul_precision":"tf32","omp_threads":3,"sdpa_backend":"flash"},"torch":"2.11.0+cu130"}'
    )
    assert {name: status(planned)[name] for name in PROCESS} == dict.fromkeys(PROCESS, "applied")
    assert why(planned, "matmul_precision") == "right after import torch"


def test_what_takes_a_line_in_the_script_names_the_line() -> None:
    planned = plan(profile(), H200, {})
    assert status(planned)["amp_dtype"] == "skipped"
    assert why(planned, "amp_dtype") == "needs a line in the script: with tuning.autocast():"
    assert "tuning.prepare(model)" in why(planned, "channels_last")
    assert "tuning.pad(n)" in why(planned, "dimension_multiple")
    for name in knobs.names():
        if name.startswith("dataloader_"):
            assert "tuning.dataloader_kwargs()" in why(planned, name)


@pytest.mark.parametrize("here", [H200, Fingerprint(cpu="another")])
def test_what_leaves_torch_alone_is_torchs_default_on_every_machine(here: Fingerprint) -> None:
    values = {name: None for name in CHOSEN if knobs.load(name).PHASE != "process"}
    planned = plan(profile({**values, "channels_last": False, "dimension_multiple": {}}), here, {})
    assert {(row.status, row.why) for row in planned.applied} == {("skipped", "torch's default")}
    assert (planned.environ, planned.payload, planned.elsewhere) == ({}, "", ())


class TestUser:
    def test_an_exported_variable_stays(self) -> None:
        planned = plan(profile(), H200, {"OMP_NUM_THREADS": "7"})
        assert (status(planned)["omp_threads"], planned.environ) == ("kept-user", ALLOCATOR)
        assert why(planned, "omp_threads") == "already exported: OMP_NUM_THREADS=7"

    def test_what_an_apply_further_out_exported_is_not_the_users(self) -> None:
        outer = child(plan(profile({"omp_threads": 3}), H200, {}), {})
        inner = plan(profile({"omp_threads": 5}), H200, outer)
        assert (status(inner), child(inner, outer)["OMP_NUM_THREADS"]) == ({"omp_threads": "applied"}, "5")
        changed = {**outer, "OMP_NUM_THREADS": "7"}
        assert status(plan(profile({"omp_threads": 5}), H200, changed)) == {"omp_threads": "kept-user"}

    def test_gputune_disable_leaves_everything(self) -> None:
        given = {"GPUTUNE_DISABLE": "1", "PYTHONPATH": "/mine"}
        planned = plan(profile(), H200, given)
        assert {row.why for row in planned.applied} == {"switched off by GPUTUNE_DISABLE=1"}
        assert set(status(planned).values()) == {"skipped"}
        assert child(planned, given) == given


class TestElsewhere:
    here = Fingerprint(cpu="AMD EPYC", cpu_budget=16, torch="2.11.0+cu130")

    def test_each_choice_that_rests_on_the_difference_is_skipped_and_says_it(self) -> None:
        planned = plan(profile(), self.here, {})
        assert len(planned.differences) == len(set(planned.differences))
        assert status(planned)["matmul_precision"] == "skipped"
        assert why(planned, "matmul_precision") == (
            "measured on another machine: device (NVIDIA H200 there, AMD EPYC here), "
            "compute_capability (9.0 there, none here)"
        )
        assert planned.payload == ""

    def test_a_choice_that_does_not_rest_on_it_is_applied(self) -> None:
        planned = plan(profile(), replace(H200, torch="2.12.0+cu130"), {})
        assert planned.elsewhere == ("compile", "cudnn_benchmark", "fused_optimizer", "sdpa_backend")
        assert planned.differences == ("torch (2.11.0+cu130 there, 2.12.0+cu130 here)",)
        assert handed(planned) == {
            "cudnn_tf32": True, "expandable_segments": True, "matmul_precision": "tf32", "omp_threads": 3,
        }  # fmt: skip
        assert "torch" not in json.loads(planned.payload)

    def test_a_field_that_no_choice_rests_on_may_differ(self) -> None:
        planned = plan(profile(), replace(H200, driver="590.1", cublas=None, cudnn=None, cuda=None, gpu_count=8), {})
        assert planned.elsewhere == ()

    def test_ignore_fingerprint_applies_all(self) -> None:
        planned = plan(profile(), self.here, {}, Terms(ignore_fingerprint=True))
        assert planned.applied == plan(profile(), H200, {}).applied
        assert "torch" not in json.loads(planned.payload)

    def test_a_cpus_profile_does_not_hold_on_a_gpu(self) -> None:
        made = profile({"amp_dtype": "bfloat16"}, fingerprint=Fingerprint(cpu="AMD EPYC"))
        planned = plan(made, Fingerprint(gpu="NVIDIA H200", cpu="AMD EPYC", compute_capability="9.0"), {})
        assert planned.elsewhere == ("amp_dtype",)
        assert "device (AMD EPYC there, NVIDIA H200 here)" in planned.differences


def threads_of(made: Profile, cpus: int, **more: Any) -> tuple[str | None, str, str]:
    """The variable for a process of so many CPUs where torch would start 16 threads; the row's status and reason."""
    here = replace(made.fingerprint, cpu_budget=cpus)
    given = more.pop("environ", {})
    planned = plan(made, here, given, Terms(**{"own_threads": 16, **more}))
    return planned.environ.get("OMP_NUM_THREADS"), status(planned)["omp_threads"], why(planned, "omp_threads")


SUITS = "as many as this process has CPUs, where torch would start 16"


class TestThreads:
    """Where torch would start more threads than the process has CPUs, whatever the profile holds."""

    @pytest.mark.parametrize("values", [{}, {"omp_threads": None}, {"omp_threads": 8}, {"omp_threads": 1}])
    def test_a_profile_of_other_cpus_gives_as_many_threads_as_there_are_cpus(self, values: dict[str, Any]) -> None:
        assert threads_of(profile(values), 2) == ("2", "applied", f"OMP_NUM_THREADS=2; {SUITS}")

    def test_so_does_one_of_these_cpus_that_was_measured_without_the_limit(self) -> None:
        alone = row("cpu_threads", "throughput", 1.0, device="cpu", threads=2, default=True)
        made = profile({"omp_threads": None}, replace(H200, cpu_budget=2), measurements=(alone,))
        assert threads_of(made, 2)[:2] == ("2", "applied")

    def test_where_torchs_count_was_measured_to_be_faster_in_the_limit_it_stays(self) -> None:
        limited = row("cpu_threads", "throughput", 1.0, device="cpu", threads=16, default=True)
        made = profile({"omp_threads": None}, replace(H200, cpu_budget=2), measurements=(limited,))
        assert threads_of(made, 2) == (None, "skipped", "torch's default")
        assert threads_of(made, 1)[:2] == ("1", "applied")

    def test_a_number_within_the_cpus_that_was_chosen_for_them_stays(self) -> None:
        made = profile({"omp_threads": 2}, replace(H200, cpu_budget=4))
        assert threads_of(made, 4) == ("2", "applied", "OMP_NUM_THREADS=2")

    def test_ignoring_the_fingerprint_brings_no_more_threads_than_cpus(self) -> None:
        assert threads_of(profile({"omp_threads": 8}), 2, ignore_fingerprint=True)[0] == "2"
        assert threads_of(profile({"omp_threads": 8}), 9, ignore_fingerprint=True)[0] == "8"
        assert threads_of(profile({"omp_threads": None}), 2, ignore_fingerprint=True)[0] == "2"

    @pytest.mark.parametrize("own", [None, 1, 2])
    def test_where_torch_starts_no_more_it_is_left_to_torch(self, own: int | None) -> None:
        made = profile({"omp_threads": None})
        assert threads_of(made, 2, own_threads=own) == (None, "skipped", "torch's default")

    def test_the_users_variable_wins(self) -> None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            kept = threads_of(profile({}), 2, environ={name: "16"})
            assert kept == (None, "kept-user", f"already exported: {name}=16")

    @pytest.mark.parametrize(
        ("terms", "reason"),
        [
            ({"numerics": "exact"}, "beyond the numerics limit exact: its effect on results is rounding"),
            ({"only": ("compile",)}, "not among the settings that were asked for"),
            ({"skip": ("omp_threads",)}, "not among the settings that were asked for"),
        ],
    )
    def test_it_is_a_setting_like_any_other(self, terms: dict[str, Any], reason: str) -> None:
        assert threads_of(profile({}), 2, **terms) == (None, "skipped", reason)

    def test_ranks_get_no_variable_and_each_takes_its_share(self) -> None:
        made = profile({"omp_threads": 2}, replace(H200, cpu_budget=4))
        variable, told, reason = threads_of(made, 4, ranks=True)
        assert (variable, told) == (None, "applied")
        assert reason == f"each rank has at most its share of the CPUs; {SUITS}"
        assert handed(plan(made, made.fingerprint, {}, Terms(ranks=True))) == {"omp_threads": 2}


class TestTf32Override:
    @pytest.mark.parametrize(("override", "defeated"), [("0", ("matmul_precision", "cudnn_tf32")), ("1", ()), ("", ())])
    def test_what_it_defeats_is_named(self, override: str, defeated: tuple[str, ...]) -> None:
        made = profile({"matmul_precision": "tf32", "cudnn_tf32": True})
        assert plan(made, H200, {"NVIDIA_TF32_OVERRIDE": override}).defeated == defeated

    def test_it_is_never_touched(self) -> None:
        given = {"NVIDIA_TF32_OVERRIDE": "0"}
        assert child(plan(profile(), H200, given), given)["NVIDIA_TF32_OVERRIDE"] == "0"


class TestChild:
    def test_the_rest_of_the_environment_is_unchanged(self) -> None:
        given = {"PATH": "/bin", "HOME": "/root", "ODD": "a b'c\n"}
        whole = child(plan(profile(), H200, given), given)
        assert given.items() <= whole.items()
        assert set(whole) - set(given) == {*THREADS, *ALLOCATOR, "GPUTUNE_APPLY", "PYTHONPATH"}

    @pytest.mark.parametrize(
        ("theirs", "expected"),
        [
            (None, SHIM),
            ("", SHIM),
            ("/a", f"{SHIM}:/a"),
            ("/a:/b:/a", f"{SHIM}:/a:/b:/a"),
            (SHIM, SHIM),
            (f"/a:{SHIM}:/b", f"{SHIM}:/a:/b"),
            (":/a", f"{SHIM}::/a"),  # an empty element is the working folder, which the user has there
        ],
    )
    def test_the_shim_stands_first_on_pythonpath_and_once(self, theirs: str | None, expected: str) -> None:
        given = {} if theirs is None else {"PYTHONPATH": theirs}
        assert child(plan(profile(), H200, given), given)["PYTHONPATH"] == expected

    def test_with_nothing_to_apply_no_python_pays(self) -> None:
        given = {"PYTHONPATH": "/a"}
        assert child(plan(profile({"omp_threads": None}), H200, given), given) == given

    def test_the_payload_of_an_apply_further_out_is_replaced(self) -> None:
        given = {"GPUTUNE_APPLY": '{"settings":{"cudnn_benchmark":false}}'}
        assert "GPUTUNE_APPLY" not in child(plan(profile({"omp_threads": None}), H200, given), given)
        assert child(plan(profile(), H200, given), given)["GPUTUNE_APPLY"].startswith(
            '{"settings":{"cudnn_benchmark":true'
        )


class TestExports:
    def in_shell(self, text: str, given: dict[str, str], shell: str = "sh") -> dict[str, str]:
        script = 'set -u; eval "$1"; exec env -0'
        done = subprocess.run([shell, "-c", script, "sh", text], env=given, capture_output=True, text=True, check=True)
        return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)

    @pytest.mark.parametrize("given", [{}, {"PYTHONPATH": ""}, {"PYTHONPATH": "/a b:/c"}, {"PYTHONPATH": SHIM}])
    @pytest.mark.parametrize("shell", ["sh", "bash"])
    @pytest.mark.parametrize("times", [1, 2])
    def test_a_shell_that_evaluates_them_gets_the_childs_environment(
        self, given: dict[str, str], shell: str, times: int
    ) -> None:
        given = {"PATH": "/usr/bin:/bin", **given}
        planned = plan(profile(), H200, given)
        got = self.in_shell(exports(planned) * times, given, shell)
        expected = child(planned, given)
        assert {name: got[name] for name in expected} == expected

    def test_values_are_quoted(self) -> None:
        planned = replace(plan(profile(), H200, {}), environ={"NAME": "a'b $(touch /tmp/no) `x`\n\\"})
        got = self.in_shell(exports(planned), {"PATH": "/usr/bin:/bin"})
        assert got["NAME"] == "a'b $(touch /tmp/no) `x`\n\\"

    def test_with_nothing_to_apply_an_earlier_payload_goes(self) -> None:
        given = {"PATH": "/usr/bin:/bin", "GPUTUNE_APPLY": "{}"}
        got = self.in_shell(exports(plan(profile({"omp_threads": None}), H200, given)), given)
        assert "GPUTUNE_APPLY" not in got
        assert "PYTHONPATH" not in got


class TestNumerics:
    def test_a_limit_leaves_out_what_goes_further(self) -> None:
        planned = plan(profile(), H200, {}, Terms(numerics="rounding"))
        assert planned.left_out == ("amp_dtype", "matmul_precision")
        assert "matmul_precision" not in handed(planned)

    def test_the_limit_holds_below_too(self) -> None:
        """A script that calls `gputune.apply` there, and another `gputune apply`."""
        given = {"GPUTUNE_NUMERICS": "mixed"}
        assert child(plan(profile(), H200, given, Terms(numerics="exact")), given)["GPUTUNE_NUMERICS"] == "exact"
        assert "GPUTUNE_NUMERICS" not in child(plan(profile(), H200, {}), {})

    def test_tf32_that_nobody_asked_for_is_said_with_its_measured_error(self) -> None:
        error = replace(row("precision", "relative_error", 2.9e-4, dtype="tf32"), samples=(2.9e-4,))
        made = profile(measurements=(error,))
        said = plan(made, H200, {}).tf32_line
        assert said.startswith(
            "FP32 matmul runs in TF32 with a relative error of 2.9e-04, as measured; --numerics rounding"
        )
        assert plan(made, H200, {}, Terms(numerics="tf32")).tf32_line == ""
        assert plan(profile({"cudnn_benchmark": True}), H200, {}).tf32_line == ""

    def test_below_an_apply_with_the_same_values_nothing_is_said_again(self) -> None:
        outer = child(plan(profile(), H200, {}), {})
        inner = plan(profile(), H200, outer)
        assert inner.tf32_line == ""
        assert child(inner, outer) == outer
        assert {row.source for row in inner.applied if row.setting == "omp_threads"} == {"profile"}

    @pytest.mark.parametrize(
        ("asked", "variable", "most"),
        [(None, None, None), ("tf32", None, "tf32"), (None, "exact", "exact"), ("mixed", "rounding", "rounding"),
         ("exact", "mixed", "exact"), (None, "", None)],
    )  # fmt: skip
    def test_the_lower_of_what_is_asked_and_what_the_environment_allows(
        self, asked: str | None, variable: str | None, most: str | None
    ) -> None:
        assert limit(asked, {} if variable is None else {"GPUTUNE_NUMERICS": variable}) == most

    def test_a_word_that_is_no_level(self) -> None:
        with pytest.raises(
            UsageError, match="GPUTUNE_NUMERICS: 'exakt' is not a level; choose from exact, rounding, tf32, mixed"
        ):
            limit(None, {"GPUTUNE_NUMERICS": "exakt"})


class TestTaskProlog:
    def environment_after(self, text: str, given: dict[str, str]) -> dict[str, str]:
        """As Slurm does: a line's first words say what to do, the rest of it stands for itself."""
        after = dict(given)
        for line in text.splitlines():
            word, rest = line.split(" ", 1)
            if word == "unset":
                del after[rest]
            else:
                assert word == "export"
                name, value = rest.split("=", 1)
                after[name] = value
        return after

    @pytest.mark.parametrize("given", [{}, {"PYTHONPATH": "/a b:/c", "OMP_NUM_THREADS": "2"}, {"GPUTUNE_APPLY": "{}"}])
    def test_the_task_gets_the_childs_environment(self, given: dict[str, str]) -> None:
        for made in (profile(), profile({"omp_threads": None})):
            planned = plan(made, H200, given)
            assert self.environment_after(task_prolog(planned, given), given) == child(planned, given)

    def test_a_line_break_would_be_a_line_of_its_own(self) -> None:
        given = {"PYTHONPATH": "/a\nexport EVIL=1"}
        with pytest.raises(UsageError, match="PYTHONPATH contains a line break, which a TaskProlog cannot pass on"):
            task_prolog(plan(profile(), H200, given), given)

    def test_what_is_there_already_is_not_printed(self) -> None:
        given = child(plan(profile(), H200, {}), {})
        assert task_prolog(plan(profile(), H200, given), given) == ""

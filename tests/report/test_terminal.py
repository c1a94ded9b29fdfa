"""Reports against golden files, 80 columns wide. `python tests/rederive.py` writes the files anew."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from forked import gputune
from making import choices, profile, program
from recorded import NOT_SUPPORTED, facts_of
from report.page.profiles import hostile

from gputune import checks
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.knobs import value_text
from gputune.probing import recommending
from gputune.profile import load
from gputune.report import terminal
from gputune.report.answer import answer_of
from gputune.resources.printable import printable

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"


def shown(printing, *arguments, **options):
    stream = io.StringIO()
    printing(*arguments, stream, **options)
    return stream.getvalue()


def profile_shown(made, **options):
    stream = io.StringIO()
    terminal.print_profile(made, stream, answer_of(made, "profile.yaml"), **{"every": True, **options})
    return stream.getvalue()


REPORTS = {
    "profile-h200.txt": lambda: profile_shown(load(TESTS.parent / "profiles" / "nvidia-h200.yaml")),
    "profile-unmeasured.txt": lambda: profile_shown(
        recommending.profile_of(facts_of("cpu-only"), (), "cpu", created="2026-11-21T12:00:00Z")
    ),
    "check-h200-x8.txt": lambda: shown(terminal.print_findings, checks.run(facts_of("nvidia-h200-x8"))),
    "check-cpu-only.txt": lambda: shown(terminal.print_findings, checks.run(facts_of("cpu-only"))),
    "check-faults.txt": lambda: shown(
        terminal.print_findings,
        (
            Finding(
                check="cpu_quota", severity="WARNING", message="[2] CPUs", remedy="OMP_NUM_THREADS=2", subject="cpu"
            ),
            Finding(check="shm_size", severity="OK", message="/dev/shm holds 8.0 GiB"),
            Finding(check="gpu_absent", severity="ERROR", message="no GPU", remedy="docker run --gpus all"),
            Finding(check="driver_cuda", severity="UNKNOWN", message="unread"),
        ),
    ),
}


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_as_agreed(name):
    assert REPORTS[name]() == (GOLDEN / name).read_text()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_fits_80_columns_and_has_no_colour_codes_where_nobody_looks(name):
    assert max(map(len, REPORTS[name]().splitlines())) <= 80
    assert "\x1b" not in REPORTS[name]()


@pytest.mark.parametrize(
    ("same", "said"),
    [
        ([{"check": "power_limit", "subject": f"GPU {gpu}"} for gpu in (0, 1, 2, 7)],
         ["power_limit              GPU 0-2,7: so it is"]),
        ([{"check": "numa"}, {"check": "mig_mode"}], ["2 checks                 so it is (numa, mig_mode)"]),
        ([{"check": "numa", "remedy": one} for one in ("taskset", "numactl")], ["-> taskset", "-> numactl"]),
    ],
    ids=["of several GPUs", "of several checks", "with different remedies"],
)  # fmt: skip
def test_what_is_said_in_the_same_words_is_said_once(same, said):
    findings = [Finding(severity="WARNING", message="so it is", **{"remedy": "do this", **one}) for one in same]
    text = shown(terminal.print_findings, findings)
    assert all(one in text for one in said)
    assert text.count("so it is") == len(said)


def test_a_remedy_for_several_gpus_names_them_all_to_nvidia_smi():
    off = [
        Finding(check="persistence_mode", severity="WARNING", message="off", subject=f"GPU {index}",
                remedy=f"on the host: sudo nvidia-smi -i 00000000:0{index}:00.0 -pm 1")
        for index in (1, 2)
    ]  # fmt: skip
    text = " ".join(shown(terminal.print_findings, off).split())
    assert "GPU 1-2: off" in text
    assert "nvidia-smi -i 00000000:01:00.0,00000000:02:00.0 -pm 1" in text


def test_the_summary_counts_each_check_by_the_worst_that_it_found_and_names_the_faults():
    findings = [
        Finding(check="numa", severity="OK", message="near"),
        Finding(check="numa", severity="WARNING", message="far", remedy="taskset"),
        Finding(check="shm_size", severity="NOT_APPLICABLE", message="none"),
    ]
    assert terminal.summary(findings) == "2 checks: 1 warning (numa), 1 not applicable"
    assert terminal.summary(findings[:1]) == "1 check: 1 ok"
    assert terminal.summary(findings, "UNKNOWN").endswith(", 1 not applicable; --all prints every answer")
    assert terminal.summary([]) == "0 checks: none asked"


@pytest.mark.slow
def test_a_check_prints_what_is_not_in_order_and_with_all_every_answer():
    words = ("check", "--only", "anomaly_detection,slurm_cpus")
    short, whole = gputune(*words), gputune(*words, "--all")
    assert short.stdout == "2 checks: 1 ok, 1 not applicable; --all prints every answer\n"
    assert "anomaly detection is off" in whole.stdout
    assert whole.stdout.endswith("2 checks: 1 ok, 1 not applicable\n")
    assert short.returncode == whole.returncode == 0


def test_a_gap_that_a_finding_tells_or_that_nvml_does_not_support_is_not_said_again():
    gaps = [
        Gap(fact="a", reason="no cgroup"),
        Gap(fact="a.b", reason="no cgroup"),
        Gap(fact="b", reason=NOT_SUPPORTED, cause="not_supported"),
        Gap(fact="b.c", reason="NVML: Function Not Found", cause="no_such_call"),
        Gap(fact="c", reason="garbage"),
    ]
    told = [Finding(check="cpu_quota", severity="UNKNOWN", message="the quota could not be read (no cgroup)", fact="a")]
    assert [gap.reason for gap in terminal.unsaid(gaps, told)] == ["garbage"]


def test_gaps_are_named_with_their_reasons():
    assert shown(terminal.print_gaps, ()) == ""
    assert "killed by SIGKILL" in shown(terminal.print_gaps, [Gap(fact="bench.conv", reason="killed by SIGKILL")])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"), (True, "on"), (False, "off"), (0, "0"), (16, "16"), ("tf32", "tf32"), ({"tf32": 4}, "tf32 4"),
        ({}, "unknown"),
    ],
)  # fmt: skip
def test_values_in_words(value, text):
    assert value_text(value) == text


@pytest.mark.parametrize("planted", ["[/foo] x", "\x1b[2J\x1b]52;c;aGk=\x07", "[link=file:///]x[/link]"])
def test_nothing_in_a_profile_steers_the_terminal_or_breaks_the_table(planted):
    text = profile_shown(hostile(planted))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count(printable(planted)) > 10


def test_a_program_is_a_row_with_its_models_and_settings_and_what_they_gained():
    faster = replace(choices({"compile": True})["compile"], gain=1.847)
    one = program(settings={"amp_dtype": choices({"amp_dtype": "float16"})["amp_dtype"], "compile": faster})
    text = profile_shown(profile(programs=(one, program("package.train", world_size=8, models=()))))
    below = " ".join(text[text.index("program") :].split())
    assert "train.py ResNet in 1 process: amp_dtype float16, compile on (1.85) package.train no model in 8 " in below
    assert "program" not in profile_shown(profile())


def test_a_program_for_which_nothing_was_chosen_has_a_row_with_what_its_tune_said():
    gaps = (Gap(fact="compile", reason="it ended with exit code 1", cause="exited"),)
    refused = (Gap(fact="bfloat16", reason="its loss is no number"),)
    text = profile_shown(profile(programs=(program(settings={}, gaps=gaps, refused=refused),)))
    below = " ".join(text[text.index("program") :].split())
    assert (
        "ResNet in 1 process: nothing that was tried gains here: torch's defaults stay; what was faster, the guard "
        "refused; compile failed failed: compile (it ended with exit code 1) refused by the guard: bfloat16 (its loss "
        "is no number)"
    ) in below


def test_programs_whose_names_are_long_and_differ_in_the_middle_are_told_apart():
    names = [f"train_a_language_model_of_{size}_billion_parameters_and_evaluate.py" for size in ("three", "seven")]
    text = profile_shown(profile({}, programs=tuple(program(name) for name in names)))
    assert "...three_b...valuate.py" in text
    assert "...seven_b...valuate.py" in text


def test_a_program_of_a_long_name_leaves_room_for_its_settings():
    text = profile_shown(profile({}, programs=(program("x" * 255),)))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "bfloat16" in text

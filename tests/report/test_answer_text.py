"""The last screens: golden files of recorded machines, and at most 24 lines of 80 columns of anything."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from answers import PROFILES, golden
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import choices, profile, program, steps, steps_with
from report.test_answer import OPEN
from rich.cells import cell_len

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.knobs import names
from gputune.profile import Profile
from gputune.report.answer import answer_of
from gputune.report.answer_text import MOST_LINES, lines

GOLDEN = Path(__file__).parents[1] / "golden"
WIDTH = 80
TEXT = st.text(min_size=1, max_size=250)
NUMBERS = st.floats(0.01, 1e6)


@pytest.mark.parametrize("name", PROFILES)
def test_a_last_screen_is_as_agreed(name: str) -> None:
    assert golden(name) == (GOLDEN / f"answer-{name}.txt").read_text()


@st.composite
def choice(draw: st.DrawFn) -> Choice:
    gain = draw(st.none() | NUMBERS)
    return Choice(
        value=draw(st.sampled_from([None, True, False, 0, 8, "bfloat16", "tf32"]) | TEXT),
        gain=gain, interval=None if gain is None else (gain / 2, gain * 2), reason=draw(TEXT),
        unmeasured=draw(st.booleans()), provisional=draw(st.booleans()),
        evidence=tuple(draw(st.lists(st.sampled_from(["training_step", "cpu_threads", "dataset"]) | TEXT, max_size=9))),
    )  # fmt: skip


SETTINGS = st.dictionaries(st.sampled_from(names()) | TEXT, choice(), max_size=20)
FINDINGS = st.builds(
    Finding, check=TEXT, severity=st.sampled_from(["ERROR", "WARNING", "UNKNOWN"]), message=TEXT, remedy=TEXT
)
GAPS = st.builds(Gap, fact=st.sampled_from(["bench.conv", "bench.precision.x", "cpu.quota"]) | TEXT, reason=TEXT)
ROWS = tuple(steps("mlp", {steps_with(): 1.0, steps_with("tf32"): 2.0}))


@st.composite
def anything(draw: st.DrawFn) -> Profile:
    families = st.dictionaries(
        st.sampled_from(["mlp", "convnet", "transformer", "waiting"]) | TEXT, SETTINGS, max_size=6
    )
    entries = draw(st.lists(TEXT.filter(lambda text: "/" not in text), max_size=12))
    return replace(
        profile({}, measurements=draw(st.sampled_from([(), ROWS]))),
        settings=draw(SETTINGS), families=draw(families), gaps=tuple(draw(st.lists(GAPS, max_size=9))),
        findings=tuple(draw(st.lists(FINDINGS, max_size=12))),
        programs=tuple(program(entry, settings=draw(SETTINGS)) for entry in entries),
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(anything(), TEXT, st.booleans())
def test_whatever_a_profile_holds_fits_on_a_screen(made: Profile, path: str, new: bool) -> None:
    said = lines(answer_of(made, path), WIDTH, written=path if new else "")
    assert len(said) <= MOST_LINES
    assert max(map(cell_len, said)) <= WIDTH
    assert all(line.isprintable() and line == line.rstrip() for line in said)


def screen(made: Profile, **more: Any) -> str:
    return "\n".join(lines(answer_of(made, "profile.yaml"), WIDTH, **more))


def test_what_was_written_is_said_and_what_is_not_to_be_applied_too() -> None:
    assert "\n".join(screen(profile({}), written="profile.yaml").splitlines()[-4:]) == (
        "written to profile.yaml\nnothing is to be applied: torch's defaults are best here\nnext:\n"
        "    gputune tune -- python train.py  # whether your own script differs"
    )


def test_an_error_stands_first_and_its_remedy_is_what_to_type_next() -> None:
    gone = Finding(check="gpu_lost", severity="ERROR", message="fell off the bus", subject="GPU 3",
                   remedy="sudo nvidia-smi -i 0 --gpu-reset  # on the host, as root")  # fmt: skip
    slow = Finding(check="numa", severity="WARNING", message="far", remedy="taskset -c 0-7 CMD  # on the host")
    said = screen(profile({}, findings=(slow, gone))).splitlines()
    assert said[:3] == ["ERROR gpu_lost: GPU 3: fell off the bus", "WARNING numa: far", "    -> taskset -c 0-7 CMD"]
    assert said[-3:] == [
        "next:", "    sudo nvidia-smi -i 0 --gpu-reset  # on the host, as root", "    gputune check  # is it mended?",
    ]  # fmt: skip


def test_more_findings_than_there_is_room_for_are_counted() -> None:
    many = [Finding(check=f"c{number}", severity="WARNING", message=f"m{number}", remedy="r") for number in range(30)]
    assert "and 25 more: gputune show profile.yaml --all" in screen(profile({}, findings=tuple(many)))


def test_a_wide_stream_gets_each_on_one_line() -> None:
    said = lines(answer_of(PROFILES["h200"](), "profile.yaml"), 10_000)
    assert len([line for line in said if line.startswith("a transformer: ")]) == 1
    assert not [line for line in said[:-2] if line.startswith("    ")]


def test_on_another_machine_the_commands_say_where_they_are_for() -> None:
    found = answer_of(PROFILES["h200"](), "profile.yaml", is_elsewhere=True)
    assert lines(found, WIDTH)[-4:] == [
        "next here, where no NVIDIA H200 was found:",
        "    gputune probe -o this-machine.yaml",
        "next on NVIDIA H200:",
        "    gputune apply --numerics mixed profile.yaml -- python train.py",
    ]


def test_where_a_tune_was_not_certain_nothing_is_said_of_torchs_defaults() -> None:
    said = screen(profile({}, programs=(OPEN,)))
    assert "nothing is to be applied" not in said
    assert "gputune tune -- python open.py" in said
    assert "nothing to gain" not in said


def test_a_tuned_program_without_a_figure_is_named_all_the_same() -> None:
    assert "train.py: tuned, without a figure" in screen(
        profile({}, programs=(program(settings=choices({"compile": True})),))
    )

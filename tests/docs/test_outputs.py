"""What the pages say that a command prints of a shipped or recorded profile is what it prints."""

from pathlib import Path

import pages
import pytest
from making import environ, gputune
from pages import PAGES, ROOT

from gputune.advice._evidence import compared
from gputune.profile import load
from gputune.report.answer import answer_of
from gputune.report.answer_text import lines as lines_of
from gputune.report.programs import answer
from gputune.search.combination import Combination
from gputune.trials.result import TuneResult

QUOTED = [
    pytest.param(block.splitlines(), id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(pages.blocks(page.read_text(), "console"))
    if "profiles/" in block.splitlines()[0]
]


@pytest.mark.slow
@pytest.mark.parametrize("lines", QUOTED)
def test_what_is_quoted_is_printed_in_that_order(lines: list[str]) -> None:
    words = lines[0].removeprefix("$ gputune ").split()
    done = gputune(*words, cwd=ROOT, env=environ(COLUMNS="80"))
    assert done.returncode == 0, done.stderr
    there = lines_of(answer_of(load(ROOT / words[1]), words[1]), 80)  # the last screen where there is such a GPU
    printed = iter([line.rstrip() for line in [*done.stdout.splitlines(), *there]])
    missing = [line for line in lines[1:] if line.strip("\n .") and line not in printed]
    assert not missing


RECORDED = ROOT / "tests" / "machines" / "nvidia-h200-tuned" / "character_gpt.yaml"


def quoted_tune(page: str) -> list[str]:
    [block] = [one for one in pages.blocks((ROOT / page).read_text(), "console") if one.startswith("$ gputune tune")]
    return block.splitlines()


def test_the_tune_on_the_first_screen_is_a_recorded_one() -> None:
    arms = [line for line in quoted_tune("README.md") if " + " in line]
    recorded = gputune("show", str(RECORDED), env=environ(COLUMNS="200"))
    assert arms
    assert not [line for line in arms if line.rstrip() not in recorded.stdout.splitlines()]


@pytest.mark.parametrize("page", ["README.md", "docs/tune.md"])
def test_a_tune_that_is_quoted_ends_with_its_answer(page: str) -> None:
    recorded = load(RECORDED)
    [program] = recorded.programs
    chosen = {"stage": "final", **{name: choice.value for name, choice in program.settings.items()}}
    default, tuned = (
        next(row for row in program.measurements if row.params == wanted) for wanted in ({"stage": "final"}, chosen)
    )
    result = TuneResult(
        program=program, profile=recorded, combination=Combination.of(chosen), gain=compared(tuned, default)
    )
    typed, *lines = quoted_tune(page)
    said = answer(result, Path("profile.yaml"), typed.partition(" -- ")[2].split()).splitlines()
    assert lines[-len(said) :] == said

"""What the pages say that a command prints of a shipped or recorded profile is what it prints."""

import pages
import pytest
from making import environ, gputune
from pages import PAGES, ROOT

from gputune.profile import load
from gputune.report.answer import answer_of
from gputune.report.answer_text import lines as lines_of

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


def test_the_tune_on_the_first_screen_is_a_recorded_one() -> None:
    blocks = pages.blocks((ROOT / "README.md").read_text(), "console")
    [block] = [one for one in blocks if one.startswith("$ gputune tune")]
    arms = [line for line in block.splitlines() if " + " in line and not line.startswith("character_gpt")]
    arms = [line.replace("*", " ", 1) for line in arms]
    path = ROOT / "tests" / "machines" / "nvidia-h200-tuned" / "character_gpt.yaml"
    recorded = gputune("show", str(path), env=environ(COLUMNS="200"))
    assert arms
    printed = [line.replace("*", " ", 1) for line in recorded.stdout.splitlines()]
    assert not [line for line in arms if line.rstrip() not in printed]

"""The pages that people read: how long they are, and that what they point to is there."""

import re
from pathlib import Path

import pages
import pytest
from pages import DOCS, PAGES, ROOT

README = ROOT / "README.md"


UNLIKE = {"README.md", "design.md", "troubleshooting.md"}
"""The index, what is not for users, and what is found by the text of an error."""


def of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_first_page_is_short() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 200
    assert len(text.split()) <= 1800


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_lines_are_short_but_for_what_cannot_be_broken(page: Path) -> None:
    lines = pages.prose(page.read_text()).splitlines()
    assert not [line for line in lines if len(line) > 120 and not line.lstrip().startswith(("|", "#"))]


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    broken = []
    for link in pages.links(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in pages.anchors(target.read_text())):
            broken.append(link)
    assert not broken


def test_every_page_is_reached_from_the_first_one_and_from_the_index() -> None:
    for start in (README, ROOT / "docs" / "README.md"):
        reached = {(start.parent / link.partition("#")[0]).resolve() for link in pages.links(start.read_text())}
        wanted = {*DOCS, *ROOT.glob("*.md")} - {start}
        assert not wanted - reached


@pytest.mark.parametrize("page", [page for page in DOCS if page.name not in UNLIKE], ids=of)
def test_a_page_begins_with_what_it_is_for_and_what_to_type(page: Path) -> None:
    start = "\n".join(page.read_text().splitlines()[:20])
    assert "**What it is for.**" in start
    assert "**What to type.**" in start or "**In short.**" in start


REPOSITORY = {path.name for path in ROOT.iterdir() if path.is_dir()} - {".git", ".venv"}
PACKAGES = {path.name for path in (ROOT / "gputune").iterdir() if path.is_dir()}


def paths(text: str) -> set[str]:
    """The words between backticks, and in the blocks for a shell, that look like a path of this repository."""
    code = " ".join([*pages.code_spans(text), *pages.blocks(text, "sh", "console")])
    words = re.findall(r"(?<![^\s'\"=(])[\w.]+/[\w./-]*\w(?![\w/*:@%+?])", code)
    return {word for word in words if "NAME" not in word}


def test_files_that_are_named_exist() -> None:
    missing = []
    for page in PAGES:
        for path in sorted(paths(page.read_text())):
            first = path.split("/")[0]
            places = [ROOT / path] if first in REPOSITORY else []
            if first in PACKAGES and path.endswith(".py"):
                places.append(ROOT / "gputune" / path)
            if places and not any(place.exists() for place in places):
                missing.append((of(page), path))
    assert not missing


def test_the_tests_that_hold_a_promise_exist() -> None:
    promised = re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text())
    assert promised
    assert not [name for name in promised if not (ROOT / "tests" / "hostile" / f"{name}.py").exists()]


def test_every_variable_of_gputune_is_listed_and_no_other() -> None:
    code = [*ROOT.glob("gputune/**/*.py"), ROOT / "gputune_start.py"]
    read = {name for path in code for name in re.findall(r"\bGPUTUNE_[A-Z_]+\b", path.read_text())}
    listed = set(re.findall(r"^\| `(GPUTUNE_[A-Z_]+)`", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE))
    assert listed == read
    named = {name for page in PAGES for name in re.findall(r"\bGPUTUNE_[A-Z_]+\b", page.read_text())}
    assert not {name for name in named - read if not name.startswith("GPUTUNE_TEST_")}


def test_markers_of_tests_that_are_named_exist() -> None:
    import tomllib

    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = {line.partition(":")[0] for line in options["markers"]}
    for page in PAGES:
        assert set(re.findall(r"pytest(?: [\w/.]+)* -m (\w+)", page.read_text())) <= markers

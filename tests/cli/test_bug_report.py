"""`gputune bug-report [FILE]`: what a maintainer needs, shown first, on any machine that `check` survives."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import stand_in
from forked import gputune, refusal
from making import before_others, environ, on_a_full_disk, python

from gputune.cli import _faults
from gputune.errors import MeasureError, UsageError
from gputune.host.shared_text import Cleaner, Owner
from gputune.report import bug_report as report

SECTIONS = ["Versions", "Installed", "Findings", "Not known", "Settings in force", "Cached profile", "Last errors",
            "Environment", "Facts"]  # fmt: skip


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "torch").mkdir()
    return environ(PYTHONPATH=stand_in.torch(tmp_path / "torch"), XDG_CACHE_HOME=str(tmp_path / "cache"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache" / "gputune"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def titles(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n\n```text\n")[2].partition("\n```")[0]


@pytest.mark.slow
def test_without_a_file_it_is_only_shown(env: dict[str, str], tmp_path: Path) -> None:
    done = gputune("bug-report", env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr, titles(done.stdout)) == (0, "", SECTIONS)
    assert "environment variables" in done.stdout.splitlines()[2]
    assert "No file but gputune's own was read" in done.stdout.splitlines()[2]
    versions = section(done.stdout, "Versions")
    assert all(
        f"{name} " in versions for name in ("gputune", "torch", "CUDA", "cuBLAS", "cuDNN", "NCCL", "NVIDIA driver")
    )
    assert "None" not in versions
    assert "OK: " in section(done.stdout, "Findings")
    assert json.loads(section(done.stdout, "Facts"))["cpu"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["torch"], "a run that works leaves nothing behind"


@pytest.mark.slow
def test_with_a_file_it_is_shown_and_written_for_this_user_alone(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("# gputune bug report\n")
    (tmp_path / "old.md").chmod(0o644)
    for name in ("new.md", "old.md"):
        done = gputune("bug-report", name, env=env, cwd=tmp_path)
        assert done.returncode == 0
        assert (tmp_path / name).read_text() == done.stdout
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert done.stderr.startswith(f"gputune: written to {name}, ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no/report.md", "FILE no/report.md: the folder "),
        ("torch", "FILE torch: is a directory"),
        ("/dev/null", "FILE /dev/null: is not a regular file"),
    ],
)
def test_a_bad_file_is_refused_before_anything_is_read(
    env: dict[str, str], tmp_path: Path, name: str, words: str
) -> None:
    assert words in refusal("bug-report", name, env=env, cwd=tmp_path)


@pytest.mark.real
def test_a_full_disk_is_one_line_and_the_report_is_shown(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    done = on_a_full_disk(tmp_path / "disk", "report.md", "bug-report report.md", env, "# gputune bug report")
    assert done.returncode == 3
    assert titles(done.stdout) == SECTIONS
    assert done.stdout.endswith("\nfiller\nreport.md\n# gputune bug report\n"), (
        "the old file stays, and nothing is left beside it"
    )
    assert "not written" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("torch", ["raise ImportError('x')", "import os; os._exit(7)", "import os; os.abort()"])
def test_without_torch_the_rest_is_reported(env: dict[str, str], tmp_path: Path, torch: str) -> None:
    (tmp_path / "torch" / "torch.py").write_text(torch)
    done = gputune("bug-report", env=env)
    assert (done.returncode, titles(done.stdout)) == (0, SECTIONS)
    assert "not asked" in section(done.stdout, "Settings in force")
    assert "libraries.torch" in section(done.stdout, "Not known")


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    ["", "[", '{"a": 1}', "[[]]", "[" * 50_000, "x" * 100_000, "\0", os.mkfifo, os.mkdir,
     lambda path: path.symlink_to("/etc/passwd")],
)  # fmt: skip
def test_broken_last_errors_are_said_to_be_so_and_not_followed(env: dict[str, str], cache: Path, made: Any) -> None:
    path = cache / _faults.NAME
    path.write_text(made) if isinstance(made, str) else made(path)
    done = gputune("bug-report", env=env)
    assert (done.returncode, titles(done.stdout)) == (0, SECTIONS)
    assert "could not be read" in section(done.stdout, "Last errors")
    assert "root:" not in done.stdout


@pytest.mark.slow
def test_a_bug_of_gputune_s_is_kept_for_the_next_report(env: dict[str, str], cache: Path, tmp_path: Path) -> None:
    """A package that gputune rests on breaks in the middle of its work."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import gputune.report.json as json\n"
        "def check(*_): raise RuntimeError('https://x:hunter2@h/ in ' + __import__('os').environ['HOME'])\n"
        "json.check = check\n"
    )
    done = python(
        "-m", "gputune", "check", "--json", env=env | {"PYTHONPATH": before_others(broken), "HOME": "/home/x1y"}
    )
    assert done.returncode == 70, done.stderr
    kept = section(gputune("bug-report", env=env).stdout, "Last errors")
    assert "RuntimeError: https://h/ in ~" in kept
    assert "json.check(" in kept, "with its traceback"
    assert stat.S_IMODE((cache / _faults.NAME).stat().st_mode) == 0o600


class TestKeeping:
    @pytest.fixture(autouse=True)
    def own_cache(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))

    def test_the_latest_few_are_kept_and_each_is_short(self, cache: Path) -> None:
        os.umask(before := os.umask(0))
        for number in range(9):
            _faults.keep(ValueError(f"{number} " + "x" * 10_000))
        assert os.umask(umask := os.umask(0)) == 0
        assert umask == before
        kept = _faults.latest()
        assert len(kept) == _faults.MOST
        assert (cache / _faults.NAME).stat().st_size < _faults.MOST_BYTES

    def test_what_the_user_mistyped_is_not(self, cache: Path) -> None:
        _faults.keep(UsageError("x", "y"))
        _faults.keep(BrokenPipeError())
        assert list(cache.iterdir()) == []
        _faults.keep(MeasureError("nothing could be measured", "look"))
        assert [one["error"] for one in _faults.latest()] == ["nothing could be measured; look"]

    def test_a_cache_that_cannot_be_written_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for folder in ("/dev/null", "", "relative"):
            monkeypatch.setenv("XDG_CACHE_HOME", folder)
            monkeypatch.setenv("HOME", folder)
            _faults.keep(ValueError("x"))
            assert _faults.latest() == []


@pytest.mark.slow
def test_it_fits_into_an_issue_and_nothing_ends_a_block() -> None:
    lines = ["```\n# a heading", "@somebody", "\x1b[31m", "x" * 100_000]
    sections = [report.Section(title=str(number), lines=tuple(lines)) for number in range(9)]
    text = report.text(sections, Cleaner(Owner()), 7)
    assert len(text.encode()) < 65_536
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line.startswith("```")].count("```") >= 3
    assert text.endswith("```")
    assert "\n# a heading" not in text


def test_a_traceback_keeps_its_columns_so_that_what_it_marks_is_seen() -> None:
    lines = ("    value = a  +  f(b)", "                  ^^^^")
    text = report.text([report.Section(title="Last errors", lines=lines)], Cleaner(Owner()), 0)
    assert section(text, "Last errors").splitlines() == list(lines)


def test_a_section_that_fails_costs_only_itself() -> None:
    def read() -> list[str]:
        raise LookupError("gone")

    assert report.section("x", read).lines == ("could not be read: LookupError: gone",)

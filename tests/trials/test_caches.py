"""Which folders a tuned program writes to for real: caches, unless the user's work lies in them."""

from pathlib import Path

import pytest

from gputune.trials.user_files import caches


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hub = tmp_path / "hf"
    for name in ("hf/hub/model", "hf/out/old", "work", "home/.cache"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return hub


def below(hub: Path, *command: str) -> set[str]:
    found = caches({"HF_HOME": str(hub), "HOME": str(hub.parent / "home")}, ["python", "train.py", *command])
    return {str(Path(one).relative_to(hub.parent)) for one in found if one.startswith(f"{hub.parent}/")}


HOME = {f"home/{name}" for name in (".cache", ".triton", ".nv")}


def test_a_cache_stays_whole_where_the_command_names_nothing_in_it(hub: Path) -> None:
    assert below(hub) == below(hub, "--out", "./runs") == below(hub, f"--cache={hub}") == {"hf", *HOME}


@pytest.mark.parametrize("out", ["out", "out/"])
def test_a_folder_in_a_cache_that_the_command_names_is_work(hub: Path, out: str) -> None:
    assert below(hub, "--out", f"{hub}/{out}") == below(hub, f"--out={hub}/{out}") == {"hf/hub", *HOME}
    assert below(hub, f"--cache={hub}", f"--out={hub}/{out}") == {"hf/hub", *HOME}


def test_so_is_one_that_is_not_there_yet_or_is_named_by_a_link_or_lies_deeper(hub: Path) -> None:
    (hub.parent / "work" / "link").symlink_to(hub)
    assert below(hub, "--out", f"{hub}/new") == {"hf/hub", "hf/out", *HOME}
    assert below(hub, "--out", "link/out") == below(hub, "--out", f"{hub}/out") == {"hf/hub", *HOME}
    assert below(hub, "--out", f"{hub}/out/new") == {"hf/hub", "hf/out/old", *HOME}


def test_a_link_in_a_cache_leads_to_a_cache_unless_to_or_into_the_work(hub: Path) -> None:
    (hub.parent / "scratch").mkdir()
    (hub.parent / "home" / ".cache" / "huggingface").symlink_to(hub.parent / "scratch")
    (hub.parent / "work" / "runs").mkdir()
    (hub.parent / "home" / ".cache" / "work").symlink_to(hub.parent / "work")
    (hub.parent / "home" / ".cache" / "runs").symlink_to(hub.parent / "work" / "runs")
    assert below(hub) == {"hf", "scratch", *HOME}

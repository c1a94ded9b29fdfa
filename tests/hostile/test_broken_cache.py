"""A cached profile that is cut short, mangled or of a newer version costs no start its settings: `auto` names it and
goes on, and the next probe replaces it.
"""

import json
from pathlib import Path

import pytest
from eight_ranks import PROBE, SHOW, number, probes, variables
from forked import gputune
from making import environ, profile, python

from gputune.host import Host
from gputune.profile import Fingerprint, load, places, save
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.locate import located

BROKEN = {"empty": "", "cut short": "schema: 1\ncreated: 2026", "newer": "schema: 2\n", "a folder": None}


@pytest.fixture(scope="module")
def here() -> Fingerprint:
    return local_fingerprint(Host(environ=environ()))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    (tmp_path / "gputune").mkdir(mode=0o700)
    return tmp_path


def broken(cache: Path, here: Fingerprint, kind: str = "cut short") -> Path:
    path, text = cache / "gputune" / places.file_name(here), BROKEN[kind]
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("kind", [kind for kind, text in BROKEN.items() if text is not None])
def test_auto_goes_on_to_the_machines_and_names_what_it_skipped(
    cache: Path, here: Fingerprint, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = broken(cache, here, kind)
    monkeypatch.setattr(places, "MACHINE", (cache / "var", cache / "etc"))
    (cache / "etc").mkdir()
    good = profile({"omp_threads": 5}, fingerprint=here)
    save(good, cache / "etc" / path.name)
    assert located(here, {"XDG_CACHE_HOME": str(cache)}) == good
    said = capsys.readouterr().err
    assert said.startswith(f"gputune: skipped {path}: ")
    assert said.count("\n") == 1


def test_and_to_the_shipped_one(cache: Path) -> None:
    h200 = Fingerprint(gpu="NVIDIA H200", torch="2.11.0+cu130")
    broken(cache, h200)
    assert located(h200, {"XDG_CACHE_HOME": str(cache)}).fingerprint.gpu == "NVIDIA H200"


def test_where_none_is_left_the_command_runs_unchanged(cache: Path, here: Fingerprint) -> None:
    path = broken(cache, here)
    done = gputune("apply", "auto", "--", *SHOW, env=environ(XDG_CACHE_HOME=str(cache)))
    assert (done.returncode, done.stdout) == (0, "None\n")
    skipped, none = done.stderr.splitlines()
    assert skipped.startswith(f"gputune: skipped {path}: ")
    assert none.startswith("gputune: there is no profile for this machine (")


def test_a_script_that_says_auto_goes_on_too(cache: Path, here: Fingerprint, monkeypatch: pytest.MonkeyPatch) -> None:
    from gputune.errors import ProfileError
    from gputune.runtime import tuning

    broken(cache, here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    with pytest.raises(ProfileError, match="there is no profile for this machine"):
        tuning.apply("auto")


@pytest.mark.parametrize("kind", [kind for kind, text in BROKEN.items() if text is not None])
def test_keeping_a_profile_replaces_it_even_where_an_older_one_would_stay(
    cache: Path, here: Fingerprint, kind: str
) -> None:
    broken(cache, here, kind)
    path = places.keep(profile(fingerprint=here), here, {"XDG_CACHE_HOME": str(cache)}, replace=False)
    assert load(path) == profile(fingerprint=here)
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_in_its_place_is_one_line(cache: Path, here: Fingerprint) -> None:
    from gputune.errors import MeasureError

    path = broken(cache, here, "a folder")
    with pytest.raises(MeasureError, match=f"{path}: not written: "):
        places.keep(profile(fingerprint=here), here, {"XDG_CACHE_HOME": str(cache)})
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["missing", "always"])
def test_to_probe_what_is_missing_means_what_cannot_be_read(
    tmp_path: Path, cache: Path, here: Fingerprint, when: str
) -> None:
    path = broken(cache, here)
    env = variables(tmp_path, cache) | {"GPUTUNE_PROBE": when}
    done = python("-c", PROBE, "apply", "auto", "--", *SHOW, env=env)
    [pid] = probes(env)
    assert json.loads(done.stdout)["settings"]["omp_threads"] == number(pid)
    assert f"gputune: skipped {path}: " in done.stderr
    assert load(path).settings["omp_threads"].value == number(pid)
    again = python("-c", PROBE, "apply", "auto", "--", *SHOW, env=env | {"GPUTUNE_PROBE": "missing"})
    assert (again.stdout, again.stderr, len(probes(env))) == (done.stdout, "", 1)

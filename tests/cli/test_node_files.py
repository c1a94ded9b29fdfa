"""`gputune check --nfd DIR --prometheus DIR`: what is left for other programs of the node."""

import json
import os
from pathlib import Path

import pytest
import stand_in
from forked import gputune, refusal
from making import environ, on_a_full_disk


@pytest.fixture(scope="module")
def stood_in(tmp_path_factory):
    return environ(PYTHONPATH=stand_in.torch(tmp_path_factory.mktemp("stood_in")))


@pytest.fixture
def folders(tmp_path):
    for name in ("features.d", "textfiles"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.slow
def test_both_files_are_written_beside_the_answer(stood_in, folders):
    plain = gputune("check", "--json", env=stood_in)
    result = gputune("check", "--json", "--nfd", "features.d", "--prometheus", "textfiles", env=stood_in, cwd=folders)
    assert (result.returncode, result.stderr) == (plain.returncode, "")
    assert json.loads(result.stdout)["findings"]
    assert "\ngputune.dev/status=" in (folders / "features.d" / "gputune.features").read_text()
    assert "\ngputune_info{" in (folders / "textfiles" / "gputune.prom").read_text()
    names = sorted(path.name for path in folders.rglob("*"))
    assert names == ["features.d", "gputune.features", "gputune.prom", "textfiles"]


@pytest.mark.slow
def test_one_folder_may_hold_both_and_others_can_read_them(stood_in, folders):
    gputune("check", "--nfd", ".", "--prometheus", ".", env=stood_in, cwd=folders / "textfiles")
    os.umask(umask := os.umask(0))
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folders / "textfiles").iterdir()}
    assert modes == dict.fromkeys(["gputune.features", "gputune.prom"], 0o644 & ~umask)


@pytest.mark.slow
def test_a_machine_that_has_not_changed_has_the_same_labels(stood_in, folders):
    texts = []
    for _ in range(2):
        gputune("check", "--nfd", "features.d", env=stood_in, cwd=folders)
        texts.append((folders / "features.d" / "gputune.features").read_text())
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_findings(stood_in, folders):
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU here")
    words = ["check", "--require-gpu", "--only", "gpu_absent", "--nfd", "features.d", "--prometheus", "textfiles"]
    assert gputune(*words, env=stood_in, cwd=folders).returncode == 1
    assert "gputune.dev/check.gpu_absent=error\n" in (folders / "features.d" / "gputune.features").read_text()
    assert 'check="gpu_absent",subject=""} 2\n' in (folders / "textfiles" / "gputune.prom").read_text()
    assert gputune(*words, "--fail-on", "never", env=stood_in, cwd=folders).returncode == 0


@pytest.mark.parametrize("option", ["--nfd", "--prometheus"])
@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("nowhere", "nowhere: the folder does not exist; create it"),
        ("/proc", "/proc: cannot be written to"),
        ("/dev/null", "/dev/null: the folder does not exist"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_before_any_check_runs(stood_in, tmp_path, option, folder, words):
    fault = refusal("check", option, folder, env=stood_in, cwd=tmp_path)
    assert fault.startswith(f"gputune: {option} ")
    assert words in fault


@pytest.mark.slow
def test_a_failed_write_costs_neither_the_other_file_nor_the_answer(stood_in, folders):
    (folders / "features.d" / "gputune.features").mkdir()
    result = gputune("check", "--nfd", "features.d", "--prometheus", "textfiles", env=stood_in, cwd=folders)
    assert result.returncode == 3
    assert "checks:" in result.stdout
    assert result.stderr.count("\n") == 1
    assert "gputune.features: not written: Is a directory; free some space there" in result.stderr
    assert (folders / "textfiles" / "gputune.prom").exists()


@pytest.mark.slow
def test_a_full_disk_keeps_the_old_file_and_leaves_no_other(stood_in, tmp_path):
    words = "check --only numa --json --prometheus . >/dev/null"
    done = on_a_full_disk(tmp_path, "gputune.prom", words, stood_in)
    assert (done.returncode, done.stdout) == (3, "filler\ngputune.prom\nold\n")
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr

"""Profiles of other versions: older ones are read whole; what is skipped of newer ones is said in one line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked import gputune
from hostile_profiles import program as trained_program
from making import profile

from gputune.live.models import ModelKey
from gputune.profile import Profile, dump, load, parse
from gputune.profile.compatibility import RETIRED, drop_retired, drop_unknown, is_newer
from gputune.profile.reading import Fault
from gputune.version import __version__, release

FILES = Path(__file__).with_name("files")
NEWER = FILES / "99.0.0-newer.yaml"


def values(read: Profile) -> dict[str, Any]:
    return {name: choice.value for name, choice in read.settings.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["0.1.0-cpu", "0.1.0-nvidia-h200"])
def test_a_file_of_0_1_0_chooses_what_it_did(name: str) -> None:
    told: list[str] = []
    read = load(FILES / f"{name}.yaml", told.append)
    written = yaml.safe_load((FILES / f"{name}.yaml").read_text())["settings"]
    assert values(read) == {name: choice["value"] for name, choice in written.items() if name not in RETIRED}
    assert len(read.settings) > 10
    assert len(read.measurements) > 10
    assert told == []


@pytest.mark.parametrize("words", ["show --all", "apply --ignore-fingerprint"])
def test_rows_and_settings_that_gputune_has_no_more_are_passed_by_in_silence(words: str) -> None:
    path = FILES / "0.1.0-nvidia-h200.yaml"
    assert all(word in path.read_text() for word in ("kind: transfer", "kind: epochs", "dataloader_threads"))
    command = ["--", "true"] if words.startswith("apply") else []
    done = gputune(*words.split(), str(path), *command)
    assert done.returncode == 0
    assert not re.search("dataloader_threads|dataloader_persistent_workers|epochs", done.stdout + done.stderr)


def test_a_file_of_0_1_0_has_the_workers_for_each_kind_of_samples() -> None:
    families = load(FILES / "0.1.0-nvidia-h200.yaml").families
    assert {kind: families[kind]["dataloader_workers"].value for kind in ("memory", "waiting")} == {
        "memory": 0, "waiting": 48,
    }  # fmt: skip


class TestNewer:
    @pytest.mark.parametrize("field", ["created", "fingerprint", "settings", "measurements"])
    def test_a_list_in_the_wrong_place_is_a_fault_of_the_file(self, field: str) -> None:
        data = {**yaml.safe_load(dump(profile())), "gputune": "99.0.0", field: ["x"]}
        if field == "measurements":
            assert parse(json.dumps(data).encode(), lambda line: None).measurements == ()
        else:
            with pytest.raises(Fault, match=field):
                parse(json.dumps(data).encode(), lambda line: None)

    def test_what_is_understood_is_read(self) -> None:
        read = load(NEWER, lambda line: None)
        assert values(read).keys() - RETIRED == {"cudnn_benchmark", "omp_threads"}
        assert read.settings["cudnn_benchmark"].interval == (1.4, 1.6)
        assert read.families["convnet"].keys() == {"channels_last"}
        assert read.fingerprint.cpu_budget == 16
        assert (len(read.measurements), len(read.findings), len(read.gaps)) == (2, 1, 0)

    def test_what_is_understood_of_a_program_is_read(self) -> None:
        [read] = load(NEWER, lambda line: None).programs
        assert {name: choice.value for name, choice in read.settings.items()} == {"amp_dtype": "bfloat16"}
        assert read.by_numerics == {"exact": {"expandable_segments": True}, "mixed": {"amp_dtype": "bfloat16"}}
        assert read.models == (ModelKey(class_name="ResNet", digest="0123456789abcdef"),)
        assert [row.samples for row in read.measurements] == [(1.0, 2.0)]

    def test_all_of_a_program_that_is_skipped_has_a_place(self) -> None:
        data = yaml.safe_load(NEWER.read_text())
        drop_retired(data)
        assert {".".join(place[2:]) for place in drop_unknown(data) if place[0] == "programs"} == {
            "", "energy_joules", "fingerprint.firmware", "models.*.dtype", "measurements.*",
            "measurements.*.energy_joules", "settings.warp_schedule", "settings.amp_dtype.confidence",
            "by_numerics.fp8", "by_numerics.exact.warp_schedule", "by_numerics.exact.compile",
            "by_numerics.mixed.matmul_precision",
        }  # fmt: skip

    @pytest.mark.parametrize("words", ["show", "apply", "deploy kubernetes configmap --profile"])
    def test_what_is_left_out_is_one_line(self, words: str) -> None:
        done = gputune(*words.split(), str(NEWER))
        assert [line for line in done.stderr.splitlines() if "was written" in line] == [
            f"gputune: {NEWER}: was written by gputune 99.0.0, and this is {__version__}: "
            "skipped settings.matmul_precision, settings.warp_schedule, families.convnet.warp_schedule, "
            "programs.*.settings.warp_schedule, programs.*.by_numerics.exact.warp_schedule, 16 more"
        ]

    def test_the_line_is_short_whatever_is_skipped(self) -> None:
        told: list[str] = []
        text = dump(profile()).replace("gputune: 0.1.0", "gputune: 99.0.0")
        parse((text + "".join(f"{'k' * 900}{number}: 1\n" for number in range(100))).encode(), told.append)
        [line] = told
        assert len(line) < 500
        assert line.endswith("95 more")

    def test_nothing_is_said_where_nothing_is_left_out(self) -> None:
        told: list[str] = []
        assert (
            parse(dump(profile()).replace("gputune: 0.1.0", "gputune: 99.0.0").encode(), told.append).gputune
            == "99.0.0"
        )
        assert told == []

    @pytest.mark.parametrize("version", [__version__, "0.1.0"])
    def test_at_this_version_or_an_older_one_it_is_a_fault(self, version: str) -> None:
        with pytest.raises(
            Fault, match=r"settings\.warp_schedule: there is no such setting|settings\.matmul_precision\.value"
        ):
            parse(NEWER.read_bytes().replace(b"gputune: 99.0.0", f"gputune: {version}".encode()))


@pytest.mark.parametrize("version", [__version__, "0.1.0", "99.0.0"])
def test_a_retired_setting_is_ignored(version: str) -> None:
    choice = "{value: 1, reason: x, evidence: [gone]}"
    names = "".join(f", {name}: {choice}" for name in RETIRED)
    text = dump(profile({})).replace("gputune: 0.1.0", f"gputune: {version}")
    text = text.replace("settings: {}", f"settings: {{omp_threads: {choice}{names}}}")
    text = text.replace("families: {}", f"families: {{convnet: {{{names[1:]}}}}}")
    own = f"{{{', '.join(f'{name}: true' for name in RETIRED)}}}"
    made = trained_program(settings=f"{{{names[1:]}}}", by_numerics=f"{{exact: {own}}}")
    told: list[str] = []
    read = parse(f"{text}programs: [{made}]\n".encode(), told.append)
    assert (values(read), read.families, told) == ({"omp_threads": 1}, {"convnet": {}}, [])
    assert (read.programs[0].settings, read.programs[0].by_numerics) == ({}, {"exact": {}})


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        (__version__, False), ("0.1.9", False), ("0.0.100", False), ("0.10.0", True), ("1.0.0", True),
        ("99.0.0rc1", True),
        ("99.0.0.dev12", True), (f"{__version__}rc1", False),
    ],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(version: str, newer: bool) -> None:
    assert is_newer(version) is newer


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "1.2.3.4", "1.2.3-x", "1.2.x", "٣.0.0", "1.2.3\n", "9" * 7 + ".0.0"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        release(text)

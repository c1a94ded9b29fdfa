"""Reading a profile: whatever is wrong is one line that names the file and the key, quickly, and that is all."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from making import CHOSEN, H200, profile, row

from gputune import knobs
from gputune.checks import Finding
from gputune.errors import ProfileError
from gputune.facts.gap import Gap
from gputune.profile import dump, load
from gputune.profile.reading import Fault, parse

WHOLE = profile(
    measurements=(row("precision", "throughput", 405.0, dtype="tf32"),),
    findings=(Finding(check="shm_size", severity="OK", message="fine"),),
    gaps=(Gap(fact="cpu.quota", reason="not readable"),),
    families={"convnet": {"channels_last": True}},
)
TEXT = dump(WHOLE)

HEAD = "schema: 1\ncreated: '2026'\ngputune: 0.1.0\nfingerprint: {}\n"


def changed(*keys: str | int, to: Any) -> str:
    data = yaml.load(TEXT, yaml.CSafeLoader)
    place = data
    for key in keys[:-1]:
        place = place[key]
    if to is ...:
        del place[keys[-1]]
    else:
        place[keys[-1]] = to
    return yaml.dump(data, Dumper=yaml.CSafeDumper)


def setting(name: str, value: str) -> str:
    return f"{HEAD}settings:\n  {name}: {{value: {value}, reason: x}}\n"


def fault_of(path: Path) -> str:
    with pytest.raises(ProfileError) as refused:
        load(path)
    message = str(refused.value)
    assert message.isprintable(), "one line, and nothing that steers a terminal"
    assert len(message) < 1000
    assert message.startswith(f"{path}: ")
    assert refused.value.remedy
    return message.removeprefix(f"{path}: ")


def test_the_whole_profile_is_read() -> None:
    assert parse(TEXT.encode()) == WHOLE


@pytest.mark.parametrize("part", ["settings", "families", "measurements", "findings", "gaps"])
def test_no_part_may_be_missing(part: str) -> None:
    parts = ("settings: {}\n", "families: {}\n", "measurements: []\n", "findings: []\n", "gaps: []\n")
    assert parse((HEAD + "".join(parts)).encode()).fingerprint.gpu is None
    with pytest.raises(Fault, match=f"{part}: this key is missing"):
        parse((HEAD + "".join(line for line in parts if not line.startswith(part))).encode())


def test_a_file_that_was_cut_off_at_any_line_is_refused() -> None:
    lines = TEXT.splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if line.startswith("gaps:"))
    for count in range(last):
        with pytest.raises(Fault):
            parse("".join(lines[:count]).encode())


def test_a_bom_and_windows_line_ends_are_read() -> None:
    assert parse(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()) == WHOLE


CHOICE = {"value": 1, "reason": "x"}

BROKEN: list[tuple[str, str]] = [  # beside what `hostile_profiles` has
    ("null\n", "is empty"),
    ("- schema: 1\n", "is not a profile"),
    ("42\n", "is not a profile"),
    (changed("schema", to=0), "schema: the number 1 expected, 0 given"),
    (changed("schema", to=-1), "schema: the number 1 expected, -1 given"),
    (changed("schema", to=None), "schema: the number 1 expected, null given"),
    (changed("schema", to=[1]), "schema: the number 1 expected, [1] given"),
    # Keys.
    (changed("extra", to=1), "extra: there is no such key"),
    (changed("created", to=...), "created: this key is missing"),
    (changed("fingerprint", to=...), "fingerprint: this key is missing"),
    (changed("fingerprint", "gpu_model", to="x"), "fingerprint.gpu_model: there is no such key"),
    (changed("settings", "amp_dtype", "reason", to=...), "settings.amp_dtype.reason: this key is missing"),
    (changed("settings", "amp_dtype", "value", to=...), "settings.amp_dtype.value: this key is missing"),
    (changed("measurements", 0, "unit", to=...), "measurements.0.unit: this key is missing"),
    (changed("measurements", 0, "command", to="id"), "measurements.0.command: there is no such key"),
    # Settings that are none.
    (changed("settings", "no_such", to=CHOICE), "settings.no_such: there is no such setting"),
    (changed("families", "convnet", "no_such", to=CHOICE), "families.convnet.no_such: there is no such"),
    # Types of the document.
    (changed("settings", to=None), "settings: a mapping expected, null given"),
    (changed("settings", "amp_dtype", to="float16"), "settings.amp_dtype: a mapping expected"),
    (changed("families", to="x"), 'families: a mapping expected, "x" given'),
    (changed("families", "convnet", to=None), "families.convnet: a mapping expected, null given"),
    (changed("created", to=2026), "created: text expected, 2026 given"),
    (changed("fingerprint", to=1), "fingerprint: a mapping expected, 1 given"),
    (changed("fingerprint", "gpu_count", to="1"), 'fingerprint.gpu_count: a whole number expected, "1" given'),
    (changed("fingerprint", "gpu_count", to=1.5), "fingerprint.gpu_count: a whole number expected, 1.5 given"),
    (changed("fingerprint", "gpu_count", to=True), "fingerprint.gpu_count: a whole number expected, true given"),
    (changed("fingerprint", "compute_capability", to=9.0),
     "fingerprint.compute_capability: text or null expected, 9.0 given"),
    (changed("settings", "amp_dtype", "gain", to="fast"),
     'settings.amp_dtype.gain: a number or null expected, "fast" given'),
    (changed("settings", "amp_dtype", "evidence", to="conv"),
     'settings.amp_dtype.evidence: a list expected, "conv" given'),
    (changed("measurements", to={}), "measurements: a list expected, {} given"),
    (changed("measurements", 0, "samples", 0, to="fast"), 'measurements.0.samples.0: a number expected, "fast" given'),
    (changed("measurements", 0, "params", "deep", to={"a": {"b": 1}}),
     "measurements.0.params.deep: text or a whole number or a number or true or false expected"),
    (changed("findings", 0, "severity", to="FINE"),
     "findings.0.severity: 'OK', 'NOT_APPLICABLE', 'UNKNOWN', 'WARNING' or 'ERROR' expected"),
    (changed("findings", 0, "severity", to="ERROR"), "findings.0"),
    # Values of settings.
    (setting("amp_dtype", "17"), "settings.amp_dtype.value: 'bfloat16' or 'float16' or null expected, 17 given"),
    (setting("amp_dtype", "float64"),
     "settings.amp_dtype.value: 'bfloat16' or 'float16' or null expected, \"float64\" given"),
    (setting("matmul_precision", "null"), "settings.matmul_precision.value: 'tf32' or 'ieee' expected, null given"),
    (setting("matmul_precision", "[tf32]"), "settings.matmul_precision.value: 'tf32' or 'ieee' expected"),
    (setting("cudnn_benchmark", "'true'"), 'settings.cudnn_benchmark.value: true or false expected, "true" given'),
    (setting("cudnn_benchmark", "{a: 1}"), "settings.cudnn_benchmark.value: true or false expected"),
    (setting("dataloader_workers", "1000000"), "settings.dataloader_workers.value: a number from 0 to 1024 expected"),
    (setting("dataloader_workers", "true"), "settings.dataloader_workers.value: a whole number expected, true given"),
    (setting("omp_threads", "0"), "settings.omp_threads.value: a number from 1 to 4096 expected, 0 given"),
    (setting("dimension_multiple", "{bfloat16: x}"),
     'settings.dimension_multiple.value.bfloat16: a whole number expected, "x" given'),
    (setting("dimension_multiple", "8"), "settings.dimension_multiple.value: a mapping expected, 8 given"),
    (f"{HEAD}families: {{convnet: {{amp_dtype: {{value: x, reason: x}}}}}}\n", "families.convnet.amp_dtype.value: 'bf"),
    (TEXT.replace("405.0,", "1e999,"), 'measurements.0.samples.0: a number expected, "1e999" given'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_or_hostile_profile(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    started = time.process_time()
    assert fault_of(path).startswith(fault)
    assert time.process_time() - started < 2


class TestFile:
    def test_a_config_map_consists_of_links(self, tmp_path: Path) -> None:
        """As Kubernetes mounts one: the name, a folder of this moment, and what is in it."""
        (tmp_path / "..2026_11_22").mkdir()
        (tmp_path / "..2026_11_22" / "profile.yaml").write_text(TEXT)
        (tmp_path / "..data").symlink_to("..2026_11_22")
        (tmp_path / "profile.yaml").symlink_to("..data/profile.yaml")
        assert load(tmp_path / "profile.yaml") == parse(TEXT.encode())

    def test_a_link_does_not_hide_that_everybody_may_write_what_it_leads_to(self, tmp_path: Path) -> None:
        (tmp_path / "real.yaml").write_text(TEXT)
        (tmp_path / "real.yaml").chmod(0o646)
        (tmp_path / "profile.yaml").symlink_to("real.yaml")
        assert fault_of(tmp_path / "profile.yaml").startswith("can be written by everybody; chmod o-w ")

    def test_a_group_may_write_it(self, tmp_path: Path) -> None:
        (tmp_path / "profile.yaml").write_text(TEXT)
        (tmp_path / "profile.yaml").chmod(0o664)
        assert load(tmp_path / "profile.yaml").schema == 1

    def test_a_name_with_a_null_byte(self) -> None:
        with pytest.raises(ProfileError, match="cannot be read: embedded null byte"):
            load("a\0b")


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(Fault):
        parse(content)


@pytest.mark.slow
@given(st.integers(0, len(TEXT.encode()) - 1), st.integers(0, 255))
def test_one_changed_byte_is_read_or_refused(place: int, byte: int) -> None:
    content = bytearray(TEXT.encode())
    content[place] = byte
    try:
        read = parse(bytes(content))
    except Fault:
        return
    assert set(read.settings) <= set(knobs.names())


@pytest.mark.slow
@given(st.integers(0, len(TEXT.encode()) - 1))
def test_a_truncated_profile_is_the_beginning_of_it_or_refused(length: int) -> None:
    try:
        read = parse(TEXT.encode()[:length])
    except Fault:
        return
    for name, choice in read.settings.items():
        assert choice.value == CHOSEN[name], "a value stands before its reason, without which it is refused"


def test_a_fingerprint_says_its_differences_in_words() -> None:
    other = replace(H200, torch="2.12.0", gpu_count=0)
    assert H200.differences(other, ("device", "torch", "gpu_count")) == [
        "torch (2.11.0+cu130 there, 2.12.0 here)", "gpu_count (1 there, none here)",
    ]  # fmt: skip
    assert H200.differences(H200, ("device", "torch", "cpu")) == []

"""Writing a profile: what is read back is what was written, by any reader; and a file is there whole or not at all."""

import json
import os
import resource
import stat
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from making import CHOSEN, H200, choices, profile, program, row

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.errors import MeasureError
from gputune.facts.gap import Gap
from gputune.host.shared_text import Cleaner, Owner
from gputune.knobs import LEVELS
from gputune.live.models import ModelKey
from gputune.measurement import Measurement
from gputune.profile import Fingerprint, Profile, Program, dump, dump_json, load, parse, save
from gputune.profile.schema import json_schema

TRAPS = [
    "no", "yes", "on", "off", "y", "N", "true", "False", "null", "Null", "~", "", " ", "1:30", "1:30:45.5", "1e5",
    "1.0e5", "089", "012", "0x1F", "0b1", "0o7", "1_000", "1", "-1", "+1", "1.10", ".5", "5.", "9.0", "inf", ".inf",
    "-.INF", ".nan", "2026-11-21", "2026-11-21T12:00:00Z", "2026-11-21 12:00:00", "=", "<<", "<<: x", "- a", "a: b",
    "a #b", "#a", "[a", "{a", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a`", "'", '"', "'\"'", "a\nb", "a\n\n b\n",
    "\n", "a\r\nb", "\ta", "a ", " a", "---", "...", "--- a", "? a", "\\", "\\n", "é", "\N{PILE OF POO}", "日本語",
    "\u2028", "\x85", "\ufeff", "\x00", "\x1b[31m", "\x7f", "\u200b", "1e999", "0.1.0", "a" * 500,
]  # fmt: skip
"""Words that some reader takes for something else, and characters that break lines or are not allowed as they are."""

TEXT = st.sampled_from(TRAPS) | st.text().filter(lambda text: Cleaner(Owner()).text(text) == text)
"""A login is cut when it is written, which `tests/host/test_shared_text.py` is about."""
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
OPTIONAL = st.none() | TEXT

CHOICE = st.builds(
    Choice,
    value=st.none(),
    gain=st.none() | NUMBER,
    interval=st.none() | st.tuples(NUMBER, NUMBER),
    reason=TEXT,
    evidence=st.lists(TEXT, max_size=3).map(tuple),
)
MEASUREMENT = st.builds(
    Measurement,
    bench=TEXT,
    metric=TEXT,
    unit=TEXT,
    samples=st.lists(NUMBER, min_size=1, max_size=4).map(tuple),
    params=st.dictionaries(
        TEXT.filter(lambda key: key != "<<"), TEXT | st.integers(-(10**18), 10**18) | NUMBER | st.booleans(), max_size=4
    ),
    device=TEXT,
    conditions=st.dictionaries(TEXT.filter(lambda key: key != "<<"), NUMBER, max_size=3),
)
FINDING = st.builds(
    Finding,
    check=TEXT,
    severity=st.sampled_from(["OK", "UNKNOWN", "NOT_APPLICABLE"]),
    message=TEXT,
    remedy=OPTIONAL,
    subject=OPTIONAL,
)
FINGERPRINT = st.builds(
    Fingerprint, gpu=OPTIONAL, gpu_count=st.integers(0, 99), torch=OPTIONAL, driver=OPTIONAL, cpu=OPTIONAL
)
SETTINGS = st.dictionaries(
    st.sampled_from(["omp_threads", "amp_dtype", "dataloader_prefetch_factor"]), CHOICE, max_size=3
)
PROGRAM = st.builds(
    Program,
    entry=TEXT.filter(lambda text: 0 < len(text) < 256 and "/" not in text),
    created=TEXT,
    fingerprint=FINGERPRINT,
    models=st.lists(
        st.builds(
            ModelKey,
            class_name=TEXT,
            digest=st.sampled_from(["0" * 16, "1e23456789012345", "0123456789abcdef"]),
            layers=st.dictionaries(st.sampled_from(["0000", "1e23", "beef"]), st.integers(1, 10**18)),
        ),
        max_size=2,
    ).map(tuple),
    input_shapes=st.lists(st.lists(st.integers(0, 10**18), max_size=8).map(tuple), max_size=3).map(tuple),
    world_size=st.integers(1, 10**18),
    settings=SETTINGS,
    by_numerics=st.dictionaries(
        st.sampled_from(LEVELS),
        st.fixed_dictionaries(
            {}, optional={"dimension_multiple": st.just({}), "amp_dtype": st.none(), "dataloader_workers": st.just(9)}
        ),
    ),
    measurements=st.lists(MEASUREMENT, max_size=2).map(tuple),
    dataset=st.none() | TEXT.filter(lambda text: 0 < len(text) < 256),
)
PROFILE = st.builds(
    Profile,
    schema=st.just(1),
    created=TEXT,
    gputune=st.just("0.1.0"),
    fingerprint=FINGERPRINT,
    settings=SETTINGS,
    families=st.dictionaries(
        st.sampled_from(["convnet", "transformer", "no", "1:30"]),
        st.dictionaries(st.just("amp_dtype"), CHOICE, max_size=1),
        max_size=2,
    ),
    programs=st.lists(PROGRAM, max_size=2).map(tuple),
    measurements=st.lists(MEASUREMENT, max_size=3).map(tuple),
    findings=st.lists(FINDING, max_size=2).map(tuple),
    gaps=st.lists(st.builds(Gap, fact=TEXT, reason=TEXT), max_size=2).map(tuple),
)


def trapped(word: str) -> Profile:
    measured = Measurement(
        bench=word, metric=word, unit=word, samples=(1.0,), device=word,
        params={word: word} if word != "<<" else {"x": word}, conditions={},
    )  # fmt: skip
    fingerprint = Fingerprint(gpu=word, torch=word)
    chosen = {"amp_dtype": Choice(value=None, reason=word, evidence=(word, word))}
    trained = program(
        word if 0 < len(word) < 256 else "train.py", created=word, fingerprint=fingerprint, settings=chosen,
        models=(ModelKey(class_name=word, digest="1e23456789012345", layers={"1e23": 2}),), measurements=(measured,),
        dataset=word if 0 < len(word) < 256 else "Images", refused=(Gap(fact=word, reason=word),),
    )  # fmt: skip
    return Profile(
        schema=1,
        created=word,
        gputune="0.1.0",
        fingerprint=fingerprint,
        settings=chosen,
        families={"convnet": {"amp_dtype": Choice(value="float16", reason=word)}},
        programs=(trained,),
        measurements=(measured,),
        findings=(Finding(check=word, severity="WARNING", message=word, remedy=word or "x", subject=word),),
        gaps=(Gap(fact=word, reason=word),),
    )  # fmt: skip


def plain(made: Profile) -> Any:
    """As JSON has it, without what is empty in a row: those keys are left out."""
    data = as_json(made)
    for part in (data, *data.get("programs", ())):
        for key in {"measurements", "findings", "gaps", "refused"}.intersection(part):
            part[key] = [
                {name: value for name, value in row.items() if value not in (None, {}, [])} for row in part[key]
            ]
    return data


def as_json(made: Profile) -> Any:
    """The fields as they are, without later keys that say nothing: no programs, nothing that stands, no dataset."""
    data = json.loads(json.dumps(asdict(made)))
    programs = data["programs"]
    for group in (data["settings"], *data["families"].values(), *(one["settings"] for one in programs)):
        drop_empty(group.values(), "unmeasured", "provisional", "since")
    drop_empty(programs, "dataset", "refused")
    drop_empty([model for one in programs for model in one["models"]], "layers")
    drop_empty([data], "programs")
    return data


def drop_empty(holders: Iterable[dict[str, Any]], *keys: str) -> None:
    for holder in holders:
        for key in keys:
            if not holder[key]:
                del holder[key]


class TestRoundTrip:
    @pytest.mark.parametrize("word", TRAPS)
    def test_a_word_that_yaml_could_take_for_something_else(self, word: str) -> None:
        made = trapped(word)
        assert parse(dump(made).encode()) == parse(dump_json(made).encode()) == made
        assert yaml.safe_load(dump(made)) == plain(made)

    @pytest.mark.slow
    @settings(max_examples=100)  # a third of a second each; the words are all tried above and below
    @given(PROFILE)
    @example(profile())
    def test_any_profile_by_this_reader_and_by_a_stock_reader(self, made: Profile) -> None:
        assert parse(dump(made).encode()) == parse(dump_json(made).encode()) == made
        assert yaml.safe_load(dump(made)) == plain(made)
        assert json.loads(dump_json(made)) == as_json(made)

    @pytest.mark.parametrize(
        "number", [1e-7, 5e-324, 1.7976931348623157e308, -0.0, 0.1, 1e16, 1e22, 123456789012345680.0]
    )
    def test_numbers(self, number: float) -> None:
        made = profile({}, measurements=(replace(row("b", "m", 1.0), samples=(number,)),))
        assert parse(dump(made).encode()) == parse(dump_json(made).encode()) == made
        assert yaml.safe_load(dump(made))["measurements"][0]["samples"] == [number]

    def test_every_setting(self) -> None:
        assert parse(dump(profile(CHOSEN)).encode()).settings == choices(CHOSEN)

    def test_text_that_is_no_unicode_can_be_written_all_the_same(self) -> None:
        """As file names and messages that are no UTF-8 come out of Python."""
        made = profile({}, gaps=(Gap(fact="cpu.model", reason="a\udcffb"),))
        for text in (dump(made), dump_json(made)):
            assert parse(text.encode()).gaps[0].reason == "a\\udcffb"


class TestShape:
    def test_a_measurement_is_one_line(self) -> None:
        text = dump(profile({}, measurements=(row("precision", "throughput", 405.0, dtype="tf32"),) * 3))
        assert len([line for line in text.splitlines() if line.startswith("- {bench: precision")]) == 3

    def test_a_setting_is_a_block_that_can_be_edited(self) -> None:
        text = dump(profile({"matmul_precision": "tf32"}))
        assert "settings:\n  matmul_precision:\n    value: tf32\n" in text

    def test_a_program_has_its_settings_in_blocks_and_its_rows_on_one_line_each(self) -> None:
        text = dump(profile({}, programs=(program(), program("eval.py"))))
        assert "programs:\n- entry: train.py\n  created: " in text
        assert "  - {class_name: ResNet, digest: 0123456789abcdef}\n" in text
        assert "  - [64, 3, 224, 224]\n" in text
        assert "  settings:\n    amp_dtype:\n      value: bfloat16\n" in text
        assert "    exact: {}\n    tf32: {matmul_precision: tf32}\n" in text
        assert len([line for line in text.splitlines() if line.startswith("  - {bench: program")]) == 4

    def test_the_dataset_and_the_layers_of_a_program_stand_there_if_they_are_known(self) -> None:
        """Earlier versions do not know them."""
        model = ModelKey(class_name="Net", digest="0" * 16, layers={"12ab": 3, "0123": 1})
        text = dump(profile({}, programs=(program(models=(model,), dataset="Images"),)))
        assert "  - {class_name: Net, digest: '0000000000000000', layers: {12ab: 3, '0123': 1}}\n" in text
        assert "  dataset: Images\n" in text
        assert parse(text.encode()).programs[0].models[0].layers == model.layers
        for older in (dump(profile({}, programs=(program(),))), dump_json(profile({}, programs=(program(),)))):
            assert "dataset" not in older
            assert "layers" not in older
            assert parse(older.encode()).programs[0].dataset is None

    def test_in_json_too(self) -> None:
        text = dump_json(profile({}, programs=(program(), program("eval.py"))))
        assert '  "programs": [\n    {\n      "entry": "train.py",\n' in text
        assert '        "amp_dtype": {"value": "bfloat16", ' in text
        assert len([line for line in text.splitlines() if line.startswith('        {"bench": "program"')]) == 4

    @pytest.mark.parametrize("write", [dump, dump_json])
    def test_without_programs_it_is_as_earlier_versions_wrote_and_read_it(self, write: Any) -> None:
        assert "programs" not in write(profile())

    def test_json_has_a_line_for_each_setting_and_row(self) -> None:
        text = dump_json(profile(measurements=(row("precision", "throughput", 405.0, dtype="tf32"),) * 3))
        assert len([line for line in text.splitlines() if line.startswith('    {"bench": "precision"')]) == 3
        assert '\n    "matmul_precision": {"value": "tf32", ' in text
        assert '\n  "gaps": []\n}\n' in text

    def test_nothing_is_an_anchor(self) -> None:
        same = row("b", "m", 1.0)
        assert "&" not in dump(profile({}, measurements=(same, same)))


class TestSchema:
    def test_it_names_every_setting_with_its_type(self) -> None:
        schema = json_schema()
        known = schema["properties"]["settings"]["properties"]
        assert set(CHOSEN) <= set(known)
        assert known["cudnn_benchmark"]["properties"]["value"]["type"] == "boolean"
        assert known["dataloader_workers"]["properties"]["value"] == {"type": "integer", "minimum": 0, "maximum": 1024}
        assert known["matmul_precision"]["properties"]["value"]["enum"] == ["tf32", "ieee"]
        assert schema["properties"]["schema"] == {"const": 1}
        assert json.loads(json.dumps(schema)) == schema

    @pytest.mark.cluster
    def test_it_allows_what_is_read_and_refuses_what_is_not(self) -> None:
        from jsonschema import Draft202012Validator

        schema = Draft202012Validator(json_schema())
        files = [
            *(Path(__file__).parents[2] / "profiles").glob("*.yaml"),
            *Path(__file__).with_name("files").glob("0.1.0-*"),
        ]
        for text in [*map(Path.read_text, files), dump(profile(programs=(program(),)))]:
            read = parse(text.encode())
            for written in (dump(read), dump_json(read)):
                assert list(schema.iter_errors(yaml.safe_load(written))) == []
        data = yaml.safe_load(dump(profile()))
        trained = yaml.safe_load(dump(profile(programs=(program(),))))["programs"][0]
        for wrong in (
            {"entry": "a/b"}, {"entry": ""}, {"models": [{"class_name": "x", "digest": "X" * 16}]}, {"world_size": 0},
            {"input_shapes": [[1] * 9]}, {"input_shapes": [[-1]]}, {"models": trained["models"] * 33}, {"new": 1},
            {"settings": {"amp_dtype": {"value": 1, "reason": "x"}}}, {"by_numerics": {"mixed": {"no_such": 1}}},
            {"by_numerics": {"mixed": {"amp_dtype": "float64"}}}, {"by_numerics": {"fast": {}}},
        ):  # fmt: skip
            assert schema.is_valid({**data, "programs": [trained]})
            assert not schema.is_valid({**data, "programs": [{**trained, **wrong}]})
        for faulty in ({**data, "new": 1}, {**data, "schema": 2}, {**data, "settings": {"no_such": {}}}, {"schema": 1}):
            assert not schema.is_valid(faulty)


class TestSave:
    old = profile({"omp_threads": 1})
    new = profile(measurements=(row("precision", "throughput", 405.0),) * 200)

    def test_it_can_be_loaded_and_nothing_else_is_left(self, tmp_path: Path) -> None:
        save(self.new, tmp_path / "p.yaml")
        assert load(tmp_path / "p.yaml") == self.new
        assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]

    def test_a_name_that_ends_in_json_makes_it_json(self, tmp_path: Path) -> None:
        save(self.new, tmp_path / "p.json")
        assert json.loads((tmp_path / "p.json").read_text())["schema"] == 1
        assert load(tmp_path / "p.json") == self.new

    def test_the_umask_holds_and_an_old_files_mode_stays(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            save(self.old, tmp_path / "p.yaml")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "p.yaml").stat().st_mode) == 0o640
        (tmp_path / "p.yaml").chmod(0o600)
        save(self.new, tmp_path / "p.yaml")
        assert stat.S_IMODE((tmp_path / "p.yaml").stat().st_mode) == 0o600

    def test_a_link_stays_one_and_what_it_names_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "real.yaml").write_text("old")
        (tmp_path / "p.yaml").symlink_to("real.yaml")
        save(self.new, tmp_path / "p.yaml")
        assert (tmp_path / "p.yaml").is_symlink()
        assert load(tmp_path / "real.yaml") == self.new

    def test_a_link_planted_in_the_temporary_files_place_is_not_followed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("os.urandom", bytes)
        victim = tmp_path / "victim"
        victim.write_text("precious")
        (tmp_path / f".p.yaml.{'00' * 8}.tmp").symlink_to(victim)
        with pytest.raises(MeasureError):
            save(self.new, tmp_path / "p.yaml")
        assert victim.read_text() == "precious"

    @pytest.mark.parametrize(
        ("name", "reason"), [("none/p.yaml", "No such file or directory"), ("file/p.yaml", "Not a directory")]
    )
    def test_where_nothing_can_be_written(self, tmp_path: Path, name: str, reason: str) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "folder").mkdir()
        with pytest.raises(
            MeasureError, match=f"not written: {reason}; make room there, or name another place with -o"
        ):
            save(self.new, tmp_path / name)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]

    def test_what_is_no_regular_file_is_not_replaced(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "folder").mkdir()
        for name in ("fifo", "folder"):
            before = (tmp_path / name).stat()
            with pytest.raises(MeasureError, match="is not a regular file"):
                save(self.new, tmp_path / name)
            assert (tmp_path / name).stat().st_mode == before.st_mode

    def test_a_file_that_may_not_grow_leaves_the_old_one(self, tmp_path: Path) -> None:
        """A limit on the size of files, as some clusters set, ends the writing in the middle."""
        save(self.old, tmp_path / "p.yaml")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            with pytest.raises(MeasureError, match="not written: File too large"):
                save(self.new, tmp_path / "p.yaml")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert load(tmp_path / "p.yaml") == self.old
        assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]

    def test_interrupted_it_leaves_the_old_one_and_nothing_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(descriptor: int) -> None:
            raise KeyboardInterrupt

        save(self.old, tmp_path / "p.yaml")
        monkeypatch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save(self.new, tmp_path / "p.yaml")
        assert load(tmp_path / "p.yaml") == self.old
        assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]

    @pytest.mark.parametrize("links", [True, False], ids=["hard links", "a file system without"])
    def test_without_replace_the_first_one_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
    ) -> None:
        def refused(*_: Path) -> None:
            raise PermissionError("no hard links here")

        if not links:
            monkeypatch.setattr(Path, "hardlink_to", refused)
        target = tmp_path / "profile.yaml"
        for threads in (3, 5):
            save(profile({"omp_threads": threads}), target, replace=False)
        assert load(target).settings["omp_threads"].value == 3
        assert [path.name for path in tmp_path.iterdir()] == ["profile.yaml"]


def test_a_profile_with_nothing_in_it() -> None:
    made = replace(profile({}), fingerprint=Fingerprint())
    assert parse(dump(made).encode()) == made
    assert made.fingerprint != H200


def test_a_profile_of_a_gpu_names_its_architecture_and_the_dtypes_of_its_tensor_cores_in_a_comment() -> None:
    text = dump(profile())
    assert "\n# Hopper; Tensor Cores compute in float16, bfloat16, tf32 and float8\n" in text
    assert parse(text.encode(), lambda said: None) == profile()
    assert "#" not in dump(profile(fingerprint=Fingerprint(cpu="AMD EPYC")))

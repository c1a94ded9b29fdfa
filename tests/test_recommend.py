"""Advice is a pure function: every shipped profile follows exactly from its facts and measurements."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import precisions, steps, steps_with
from recorded import facts_of

from gputune import advice
from gputune.facts import Facts
from gputune.knobs import all_knobs
from gputune.probing import recommending
from gputune.profile import dump, load, parse
from gputune.strict_types import convert

PROFILES = sorted((Path(__file__).parents[1] / "profiles").glob("*.yaml"))


def machine(profile):
    return Path(profile).stem


def facts_beside(profile):
    """The facts that were read in the run that the profile comes from."""
    text = (Path(__file__).parent / "machines" / machine(profile) / "facts.json").read_bytes()
    return convert(Facts, json.loads(text))


def rederived(path):
    """The profile that follows from a shipped one's measurements, written by this version of gputune."""
    shipped = load(path)
    return recommending.profile_of(facts_beside(path), shipped.measurements, "cuda:0", created=shipped.created)


def test_there_is_a_profile_to_replay():
    assert "nvidia-h200" in {machine(path) for path in PROFILES}


@pytest.mark.parametrize("path", PROFILES, ids=machine)
def test_a_shipped_profile_is_derived_again_exactly(path):
    shipped = load(path)
    again = rederived(path)
    assert again.fingerprint == shipped.fingerprint
    assert again.settings == shipped.settings
    assert again.families == shipped.families
    assert again.findings == shipped.findings
    assert replace(again, gputune=shipped.gputune) == shipped


@pytest.mark.slow
@pytest.mark.parametrize("path", PROFILES, ids=machine)
def test_a_shipped_profile_survives_writing_and_reading(path):
    shipped = load(path)
    assert parse(dump(shipped).encode()) == shipped


def test_every_setting_is_listed_and_torchs_default_where_nothing_was_measured():
    profile = recommending.profile_of(facts_of(), (), "cuda:0", created="2026-11-21T12:00:00Z")
    assert set(profile.settings) == set(all_knobs())
    defaults = {
        "amp_dtype": None, "channels_last": False, "compile": False, "cudnn_benchmark": False,
        "cudnn_tf32": True, "expandable_segments": False,
        "dataloader_pin_memory": False, "dataloader_prefetch_factor": None,
        "dataloader_workers": 0, "dimension_multiple": {},
        "fused_optimizer": False, "matmul_precision": "ieee",
        "omp_threads": None, "sdpa_backend": None,
    }  # fmt: skip
    assert {name: profile.settings[name].value for name in defaults} == defaults
    assert all(choice.gain is None and choice.reason for choice in profile.settings.values())
    assert profile.families == {}


def test_what_differs_by_kind_of_network_is_derived_from_the_steps_of_each():
    tf32, half = steps_with("tf32"), steps_with("bfloat16")
    last = half.plus("channels_last", True)
    rows = [
        *precisions("mlp", tf32=100.0, bfloat16=90.0),
        *steps("convnet", {tf32: 100.0, half: 150.0, last: 250.0, tf32.plus("channels_last", True): 120.0}),
        *steps("convnet", {last: 250.0, last.plus("fused_optimizer", True): 280.0}, "options"),
    ]
    derived = recommending.families(facts_of(), rows)
    assert {kind: {name: choice.value for name, choice in own.items()} for kind, own in derived.items()} == {
        "mlp": {"amp_dtype": None},
        "convnet": {"amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True},
    }
    assert all(choice.reason for own in derived.values() for choice in own.values())


def test_a_family_has_a_choice_only_of_settings_that_every_profile_has():
    able = [name for name in all_knobs() if hasattr(advice.of(name), "of_family")]
    assert {"amp_dtype", "channels_last", "compile", "fused_optimizer"} <= set(able)
    assert all(all_knobs()[name].PHASE == "code" for name in able), "a process has one value of the others"


@cache
def shipped_rows():
    return load(PROFILES[0]).measurements


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_rows_of_another_version_are_left_out(data: st.DataObject) -> None:
    """As in a file that a probe of some benches completes: a key may be missing, or hold what nobody knows here."""
    rows = list(shipped_rows())
    number = data.draw(st.integers(0, len(rows) - 1))
    params = dict(rows[number].params)
    if params:
        name = data.draw(st.sampled_from(sorted(params)))
        params |= {name: data.draw(st.sampled_from(["float8", 3, 0.5, 0, -1, True]))}
        params = data.draw(st.sampled_from([params, {key: value for key, value in params.items() if key != name}]))
    rows[number] = replace(rows[number], params=params)
    assert recommending.profile_of(facts_of(), rows, "cuda:0", created="").settings

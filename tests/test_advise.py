"""Advice is a pure function: every shipped profile follows exactly from its machine's facts and its own measurements."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from recorded import facts_of

from gputune import advise
from gputune.facts import Facts
from gputune.profile import dump, load, parse
from gputune.settings import all_settings

PROFILES = sorted((Path(__file__).parents[1] / "profiles").glob("*.yaml"))


def machine(profile):
    return Path(profile).stem


def facts_beside(profile):
    """The facts that were read in the run that the profile comes from."""
    text = (Path(__file__).parent / "machines" / machine(profile) / "facts.json").read_bytes()
    return TypeAdapter(Facts).validate_json(text)


def test_there_is_a_profile_to_replay():
    assert "nvidia-h200" in {machine(path) for path in PROFILES}


@pytest.mark.parametrize("path", PROFILES, ids=machine)
def test_a_shipped_profile_is_derived_again_exactly(path):
    shipped = load(path)
    again = advise.advise(facts_beside(path), shipped.measurements, "cuda:0", created=shipped.created)
    assert again.fingerprint == shipped.fingerprint
    assert again.settings == shipped.settings
    assert again.families == shipped.families
    assert again.findings == shipped.findings
    assert replace(again, gputune=shipped.gputune) == shipped


@pytest.mark.parametrize("path", PROFILES, ids=machine)
def test_a_shipped_profile_survives_writing_and_reading(path):
    shipped = load(path)
    assert parse(dump(shipped).encode()) == shipped
    assert len(path.read_bytes()) < 100 * 1024


def test_every_setting_is_listed_and_torchs_default_where_nothing_was_measured():
    profile = advise.advise(facts_of(), (), "cuda:0", created="2026-11-21T12:00:00Z")
    assert set(profile.settings) == set(all_settings())
    defaults = {
        "amp_dtype": None, "channels_last": False, "cudnn_benchmark": False, "cudnn_tf32": True,
        "dataloader_persistent_workers": False, "dataloader_pin_memory": False, "dataloader_prefetch_factor": None,
        "dataloader_workers": 0, "dimension_multiple": {}, "matmul_precision": "ieee", "omp_threads": None,
    }  # fmt: skip
    assert {name: choice.value for name, choice in profile.settings.items()} == defaults
    assert all(choice.gain is None and choice.reason for choice in profile.settings.values())

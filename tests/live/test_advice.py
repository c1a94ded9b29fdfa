"""What may be put into models: found by the keys of a program's models, and the same after a journey as JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.live.advice import Advice, Loading, TunedProgram

NAMES = st.sampled_from(["amp_dtype", "channels_last", "compile", "fused_optimizer"])
VALUES = st.dictionaries(NAMES, st.one_of(st.booleans(), st.integers(0, 9), st.sampled_from(["bfloat16"]), st.none()))
LOADINGS = st.one_of(
    st.none(),
    st.builds(
        Loading,
        choices=st.dictionaries(st.just("dataloader_workers"), st.integers(0, 64)),
        measured=st.dictionaries(st.just("cpu_budget"), st.integers(1, 64)),
        deterministic=st.booleans(),
    ),
)
PROGRAMS = st.builds(
    TunedProgram,
    entry=st.text(min_size=1, max_size=8),
    models=st.lists(st.tuples(st.text(max_size=8), st.text("0f", min_size=16, max_size=16)), max_size=3).map(tuple),
    settings=VALUES,
    shapes=st.lists(st.lists(st.integers(0, 512), max_size=4).map(tuple), max_size=3).map(tuple),
    world_size=st.integers(1, 8),
    trains=st.booleans(),
    loading=LOADINGS,
    dataset=st.sampled_from([None, "Images"]),
    layers=st.lists(st.dictionaries(st.sampled_from(["0123", "4567"]), st.integers(1, 9)), max_size=3).map(tuple),
    torch=st.sampled_from([None, "2.11.0"]),
)
ADVICE = st.builds(
    Advice,
    device=st.sampled_from(["cuda", "cpu"]),
    general=VALUES,
    families=st.dictionaries(st.sampled_from(["convnet", "mlp"]), VALUES),
    programs=st.lists(PROGRAMS, max_size=2).map(tuple),
    loading=LOADINGS,
    quiet=st.booleans(),
    profile=st.sampled_from(["", "profile.yaml"]),
)


@pytest.mark.slow
@given(ADVICE)
def test_it_is_the_same_after_a_journey_as_json(advice: Advice) -> None:
    assert Advice.from_plain(json.loads(json.dumps(advice.plain))) == advice


def tuned(entry: str, *models: str, loading: Loading | None = None, **settings: Any) -> TunedProgram:
    keys = tuple((model, "0" * 16) for model in models)
    return TunedProgram(entry=entry, models=keys, settings=settings, loading=loading)


def keys(*models: str) -> list[tuple[str, str]]:
    return [(model, "0" * 16) for model in models]


class TestProgram:
    advice = Advice(device="cpu", programs=(tuned("a", "A"), tuned("ab", "A", "B"), tuned("c", "C"), tuned("d", "A")))

    @pytest.mark.parametrize(
        ("models", "entry"),
        [(["A"], "a"), (["B", "A"], "ab"), (["C", "A"], "a"), (["C"], "c"), (["B"], None), ([], None)],
    )
    def test_all_its_models_are_there_and_the_most_of_any_and_the_newest(
        self, models: list[str], entry: str | None
    ) -> None:
        found = self.advice.program(keys(*models))
        assert (found.entry if found else None) == entry

    def test_a_program_without_models_is_none(self) -> None:
        assert Advice(device="cpu", programs=(tuned("a"),)).program(keys("A")) is None

    def test_a_model_of_the_same_name_with_other_parameters_is_another(self) -> None:
        assert self.advice.program([("A", "1" * 16)]) is None


def test_a_kind_without_values_of_its_own_gets_the_general_ones() -> None:
    advice = Advice(device="cpu", general={"compile": True}, families={"mlp": {}})
    assert advice.by_family("convnet") == advice.by_family(None) == {"compile": True}
    assert advice.by_family("mlp") == {}


def test_programs_with_arguments_for_dataloaders() -> None:
    own = Loading(choices={"dataloader_workers": 2})
    programs = (tuned("a", "A"), tuned("b", "B", loading=own), tuned("without models", loading=own))
    assert [one.entry for one in Advice(device="cpu", programs=programs).loading_programs] == ["b"]


@pytest.mark.parametrize(
    ("advice", "does"),
    [
        (Advice(device="cpu"), False),
        (Advice(device="cpu", quiet=True), False),
        (Advice(device="cpu", general={"compile": True}), True),
        (Advice(device="cpu", families={"mlp": {}}), True),
        (Advice(device="cpu", programs=(tuned("a", "A"),)), True),
        (Advice(device="cpu", loading=Loading(choices={})), True),
    ],
)
def test_whether_there_is_anything_to_do(advice: Advice, does: bool) -> None:
    assert bool(advice) == does

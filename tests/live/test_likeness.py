"""What a process is told whose models are almost those of a program that was tuned."""

from typing import Any

import pytest

from gputune.live.advice import TunedProgram
from gputune.live.likeness import Model, line

NET = {"aaaa": 2, "bbbb": 1, "cccc": 3}
WIDER = {"aaaa": 1, "bbbb": 1, "cccc": 2, "dddd": 1, "eeee": 1}
DEEPER = {"aaaa": 2, "bbbb": 1, "cccc": 4}
OTHER = {"ffff": 6}
REMEDY = "; tune this one: gputune tune -- CMD"


def model(name: str, layers: dict[str, int] | None = None, digest: str = "1") -> Model:
    return Model(identity=(name, digest * 16), layers=layers or {})


def tuned(*models: Model, name: str = "train.py", trains: bool = True) -> TunedProgram:
    return TunedProgram(
        entry=name, models=tuple(one.identity for one in models), settings={}, trains=trains,
        layers=tuple(one.layers for one in models) if any(one.layers for one in models) else (),
    )  # fmt: skip


def said(programs: Any, *models: Model, trains: bool = True, entry: str = "renamed.py") -> str | None:
    return line("profile.yaml", programs, models, trains=trains, entry=entry)


@pytest.mark.parametrize(
    ("here", "what"),
    [
        (model("Net", WIDER), "Net: 2 layers differ"),
        (model("Net", DEEPER), "Net: 1 layer differs"),
        (model("Net", OTHER), "Net: 6 layers differ"),
        (model("Net", NET), "Net: its layers have other names"),
        (model("Net"), "Net"),
        (model("Model", DEEPER), "Net, and this is Model: 1 layer differs"),
        (model("Model", NET, "0"), "Net, and this is Model: its layers have other names"),
    ],
)
def test_a_model_of_the_same_class_or_with_mostly_the_same_layers_is_named_with_what_differs(
    here: Model, what: str
) -> None:
    found = said([tuned(model("Net", NET, "0"))], here)
    assert found == f"profile.yaml has a program tuned for another model ({what}){REMEDY}"


@pytest.mark.parametrize("here", [model("Model", OTHER), model("Model", {"aaaa": 2}), model("Model")])
def test_any_other_model_is_not(here: Model) -> None:
    assert said([tuned(model("Net", NET, "0"))], here) is None


def test_a_program_of_an_older_profile_has_the_class_alone() -> None:
    found = said([tuned(model("Net", digest="0"))], model("Net", WIDER))
    assert found == f"profile.yaml has a program tuned for another model (Net){REMEDY}"


def test_a_program_of_the_same_name_is_named_whatever_its_models_are() -> None:
    found = said([tuned(model("Net", NET, "0"))], model("Model", OTHER), entry="train.py")
    assert found == f"profile.yaml has a program tuned for another model (Net){REMEDY}"


def test_of_several_programs_the_one_that_is_nearest() -> None:
    programs = [tuned(model("Net", OTHER, "0")), tuned(model("Net", DEEPER, "0")), tuned(model("Net", NET, "0"))]
    assert "1 layer differs" in str(said(programs, model("Net", {**DEEPER, "cccc": 5})))


def test_of_several_models_those_that_are_not_here() -> None:
    program = tuned(model("Net", NET, "0"), model("Critic", OTHER, "0"))
    assert "(Critic: not here)" in str(said([program], model("Net", NET, "0")))


@pytest.mark.parametrize("trains", [True, False])
def test_the_same_models_that_did_something_else_when_they_were_tuned(trains: bool) -> None:
    how = "calls without gradients" if trains else "training"
    assert said([tuned(model("Net", NET, "0"), trains=not trains)], model("Net", NET, "0"), trains=trains) == (
        f"profile.yaml has a program tuned for {how} of this model (Net), which is not what this program does"
    )


def test_without_programs_there_is_nothing_to_say() -> None:
    assert said([], model("Net", NET)) is None

"""torch's answers come from another interpreter: what is of another type is a gap, and costs no other answer."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of

from gputune.facts import unimported_torch
from gputune.facts.gap import Gaps
from gputune.host import Host

EIGHT = "nvidia-h200-x8"
DEVICE = RecordedHost().torch["devices"][0]
COMPILE = RecordedHost().torch["compile"]
FLAGS = RecordedHost().torch["flags"]
TEXTS = (
    "python",
    "executable",
    "torch",
    "cuda",
    "hip",
    "folder",
    "api_conflict",
    "nccl",
    "cublas",
    "cublaslt",
    "pynvml",
)
LISTS = ("arch_list", "bundled", "loaded", "devices")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3),
    max_leaves=6,
)


def answered(torch):
    gaps = Gaps()
    host = RecordedHost(EIGHT)
    host.torch = torch
    return unimported_torch.ask_torch(host, gaps), [gap.fact for gap in gaps.found]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in TEXTS for value in (1, True, ["a"], {})]
    + [(name, value) for name in ("threads", "cudnn") for value in ("8", -1, 2**63, 1.5, True, float("nan"))]
    + [(name, value) for name in LISTS for value in ("a", 7, {}, [1], [None], [["a"]])]
    + [("arch_list", ["sm_90"] * 4097), ("devices", [DEVICE] * 257), ("devices", [DEVICE, {}])]
    + [("devices", [{**DEVICE, field: value}]) for field in DEVICE for value in ([], 1.5, -1)]
    + [("devices", [{**DEVICE, field: None}]) for field in DEVICE if field != "uuid"]
    + [("compile", value) for value in ("gcc", [], {}, {**COMPILE, "headers": 1}, {**COMPILE, "cache": 1})]
    + [("flags", value) for value in (1, [], {**FLAGS, "cudnn_tf32": "yes"}, {**FLAGS, "cudnn_benchmark": 1})],
)  # fmt: skip
def test_an_answer_of_another_type_is_a_gap_and_costs_no_other(name, value):
    usual = RecordedHost(EIGHT).torch
    kept, gaps = answered({**usual, name: value})
    assert (name in kept, gaps) == (False, [f"libraries.{name}"])
    assert kept == {other: one for other, one in usual.items() if other not in (name, "gaps")}


def test_right_answers_stay_as_they_are():
    usual = RecordedHost(EIGHT).torch
    assert answered(usual) == ({name: one for name, one in usual.items() if name != "gaps"}, [])


def test_names_that_nobody_asks_for_are_passed_over():
    kept, gaps = answered(
        {
            "python": "3.12.1",
            "torch": "2.11.0",
            "more": 1,
            "flags": {**FLAGS, "more": 1},
            "compile": {**COMPILE, "more": 1},
        }
    )
    assert (kept, gaps) == ({"python": "3.12.1", "torch": "2.11.0", "flags": FLAGS, "compile": COMPILE}, [])


@pytest.mark.parametrize(
    ("gaps", "told"),
    [
        ({"cublas": {"type": "LookupError", "name": None, "message": "no"}}, ["libraries.cublas"]),
        ({"cublas": "no"}, ["libraries.cublas"]),
        ({"cublas": {"type": 1, "name": None, "message": "no"}}, ["libraries.cublas"]),
        ({"cublas": {"type": "LookupError", "name": None}}, ["libraries.cublas"]),
        ("no", ["libraries.gaps"]),
        ([], ["libraries.gaps"]),
        (None, []),
    ],
)
def test_what_could_not_be_answered_is_a_gap_however_it_is_said(gaps, told):
    assert answered({"python": "3.12.1", "gaps": gaps}) == ({"python": "3.12.1"}, told)


@pytest.mark.parametrize("answers", [[], "torch", 7, {}, {"torch": "2.11.0"}])
def test_an_answer_that_is_not_the_script_s_is_a_gap(answers):
    assert answered(answers) == ({}, ["libraries.torch"])


def test_texts_are_cut_and_printable():
    kept, _ = answered({"python": "3.12.1", "torch": "2\x1b[31m\n" + "9" * 9999, "folder": "/" + "a" * 9999})
    assert kept["torch"].startswith("2?[31m?9")
    assert (len(kept["torch"]), len(kept["folder"])) == (500, 4096)


@pytest.mark.slow
@given(answers=st.dictionaries(st.sampled_from([*TEXTS, *LISTS, "threads", "flags", "compile", "gaps", "x"]), JSON))
def test_any_json_is_read_into_pure_data(answers):
    kept, errors, left_out = unimported_torch.held(answers)
    json.dumps([kept, errors, left_out], allow_nan=False)


@pytest.mark.slow
@settings(max_examples=30)
@given(answers=st.dictionaries(st.sampled_from([*TEXTS, *LISTS, "threads", "flags", "compile"]), JSON, max_size=4))
def test_the_facts_of_any_answers_are_pure_data(answers):
    given_answers = {name: one for name, one in answers.items() if one is not None}
    json.dumps(asdict(facts_of(torch=given_answers)), allow_nan=False)


@pytest.mark.parametrize("answer", [{"folder": 7}, {"folder": ["/x"]}, [], "x"])
def test_another_python_s_answer_of_another_type_is_a_gap(answer):
    files = {"/bin/python": ""}
    found = facts_of(where=answer, files=files, environ={"PATH": "/bin"})
    assert found.libraries.path_torch_folder is None
    assert "libraries.path_torch_folder" in [gap.fact for gap in found.gaps]


def test_a_child_that_answers_something_else_is_a_gap(tmp_path):
    liar = tmp_path / "python"
    liar.write_text("#!/bin/sh\neval echo '[1]' '>&'$2\n")
    liar.chmod(0o755)
    gaps = Gaps()
    assert unimported_torch.ask_torch(Host(python=str(liar)), gaps) == {}
    assert [gap.fact for gap in gaps.found] == ["libraries.torch"]

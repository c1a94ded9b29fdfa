from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import tf32_libraries


def findings(capability="9.0", **libraries):
    facts = facts_of()
    gpus = tuple(replace(gpu, compute_capability=capability) for gpu in facts.gpus)
    facts = replace(facts, gpus=gpus, libraries=replace(facts.libraries, **libraries))
    return {found.subject: found for found in tf32_libraries.check(facts, ())}


@pytest.mark.parametrize(
    ("libraries", "old", "new"),
    [({"cublas": "10.2.3"}, "cuBLAS", "cuDNN"), ({"cudnn": "7.6.5"}, "cuDNN", "cuBLAS")],
)
def test_a_library_from_before_tf32(libraries, old, new):
    found = findings(**libraries)
    assert found[old].severity == "WARNING"
    assert next(iter(libraries.values())) in found[old].message
    assert found[new].severity == "OK"


def test_the_first_libraries_with_tf32():
    assert {found.severity for found in findings(cublas="11.0.0", cudnn="8.0.0").values()} == {"OK"}


def test_the_folder_that_an_old_library_was_loaded_from_is_taken_out():
    facts, old = facts_of(environ={"LD_LIBRARY_PATH": "/opt/old/lib:/opt/mpi/lib"}), "/opt/old/lib/libcublas.so.10"
    libraries = replace(facts.libraries, cublas="10.2.3", loaded=(old,))
    [found, _] = tf32_libraries.check(replace(facts, libraries=libraries), ())
    assert found.remedy.startswith("export LD_LIBRARY_PATH=/opt/mpi/lib  # or, if torch itself is that old: ")


def test_an_old_torch_is_replaced():
    assert findings(cublas="10.2.3")["cuBLAS"].remedy == (
        "/opt/torch/.venv/bin/python3 -m pip install --upgrade torch --index-url https://download.pytorch.org/whl/cu130"
    )


@pytest.mark.parametrize(("field", "name"), [("cublas", "cuBLAS"), ("cudnn", "cuDNN")])
def test_an_unread_version(field, name):
    assert [found.severity for found in findings(**{field: None}).values()].count("UNKNOWN") == 1
    assert name in findings(**{field: None})[None].message


def test_an_unread_capability_is_no_lack_of_tf32():
    assert findings(capability=None, cublas="10.2.3")["cuBLAS"].severity == "WARNING"


@pytest.mark.parametrize(
    ("fault", "severity"),
    [({"capability": "7.5"}, "NOT_APPLICABLE"), ({"cuda": None}, "NOT_APPLICABLE"), ({"torch": None}, "UNKNOWN")],
)
def test_where_the_question_does_not_arise(fault, severity):
    assert findings(**fault)[None].severity == severity

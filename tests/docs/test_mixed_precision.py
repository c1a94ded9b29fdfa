"""The snippets of docs/mixed-precision.md run on a CPU as they stand there, and print and raise what they say.

A comment behind a `print` is what it prints, in a loop with ", then " between the lines. A comment that begins with the
name of an error is what the statement above it raises; "..." stands for the rest of a long message.
"""

import ast
import contextlib
import io
import re
import traceback
from pathlib import Path
from typing import Any

import pages
import pytest
from making import environ, python
from pages import ROOT

PAGE = (ROOT / "docs" / "mixed-precision.md").read_text()
[START, *_] = pages.blocks(PAGE, "python")
SECTIONS = {section.partition("\n")[0]: pages.blocks(section, "python") for section in PAGE.split("\n## ")[1:]}
ERROR = re.compile(r"^ *# ([\w.]*Error: .*)$", re.MULTILINE)


def statements(block: str) -> list[tuple[str, str]]:
    """The statements of a block, each with what it raises as a traceback's last line begins, or with nothing."""
    lines = block.splitlines()
    starts = [node.lineno - 1 for node in ast.parse(block).body]
    parts = ["\n".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return [(part, found[1].removesuffix("...") if (found := ERROR.search(part)) else "") for part in parts]


def raised(statement: str, scope: dict[str, Any]) -> str:
    """The last lines of its traceback; empty if it ends well."""
    try:
        exec(compile(statement, "mixed-precision.md", "exec"), scope)
    except Exception as error:
        return "".join(traceback.format_exception_only(error))
    return ""


def test_every_section_has_a_snippet() -> None:
    assert {len(blocks) for blocks in SECTIONS.values()} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
def test_a_snippet_prints_and_raises_what_it_says(title: str) -> None:
    import torch

    [block] = SECTIONS[title]
    torch.manual_seed(0)
    scope: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement, error in [*statements(START), *statements(block)]:
            found = raised(statement, scope)
            assert found.startswith(error) if error else not found, f"{statement}\n{found}"
    said = re.findall(r"^ *print\(.*\)  # (.+)$", block, re.MULTILINE)
    assert printed.getvalue().splitlines() == [line for lines in said for line in lines.split(", then ")]


@pytest.mark.slow
def test_a_mismatch_names_the_operator_if_c_plus_plus_s_calls_are_shown() -> None:
    code = "import torch; torch.nn.Linear(4, 4)(torch.zeros(4, 4).bfloat16())"
    done = python("-c", code, env=environ(TORCH_SHOW_CPP_STACKTRACES="1", TORCH_DISABLE_ADDR2LINE="1"))
    assert "same dtype" in done.stderr
    assert "addmm" in done.stderr.partition("C++ CapturedTraceback")[2]


def test_what_torch_says_only_on_a_gpu_is_quoted_as_the_installed_one_says_it() -> None:
    import torch

    quoted = "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast."
    assert quoted in " ".join(PAGE.split())
    assert quoted.encode() in Path(torch.__file__).with_name("lib").joinpath("libtorch_cpu.so").read_bytes()


@pytest.mark.parametrize("name", re.findall(r"`(\w+)`", PAGE.partition("takes half precision (")[2].partition(")")[0]))
def test_a_decomposition_takes_no_half_precision(name: str) -> None:
    import torch

    matrix = torch.eye(2, dtype=torch.bfloat16)
    given = (matrix, matrix) if name in {"solve", "lstsq"} else (matrix,)
    with pytest.raises(RuntimeError, match=r"BFloat16|float and double"):
        getattr(torch.linalg, name)(*given)

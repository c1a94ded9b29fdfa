"""A program that sets TF32 itself, after gputune did, has exactly what it has without gputune."""

from itertools import product
from typing import Any

import pytest
import torch
import torch_child

from gputune.knobs._tf32 import new_interface

pytestmark = pytest.mark.slow
NEW = new_interface(torch)

SET_BY_GPUTUNE = """
from gputune.live import flags
row = flags.set_now("matmul_precision", "tf32")
assert row.before == "ieee" and row.after == "tf32", row
"""

ALL_READ = """
def read(get):
    try:
        return get()
    except RuntimeError:
        return "raises"

b = torch.backends
nodes = [b, b.cudnn, b.cuda.matmul, b.cudnn.conv, b.cudnn.rnn, b.mkldnn.matmul] if hasattr(b, "fp32_precision") else []
answer = [read(lambda: node.fp32_precision) for node in nodes]
answer += [read(lambda: b.cuda.matmul.allow_tf32), read(lambda: b.cudnn.allow_tf32)]
answer += [read(torch.get_float32_matmul_precision)]
"""

ROW = "answer = [flags.rows_now()[0].status, flags.rows_now()[0].after, flags.rows_now()[0].why]"

OLDER = [
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cuda.matmul.allow_tf32 = False",
    "torch.set_float32_matmul_precision('highest')",
    "torch.set_float32_matmul_precision('high')",
    "torch.set_float32_matmul_precision('medium')",
]
NODES = [f"torch.backends.{name}fp32_precision" for name in ("", "cudnn.", "cuda.matmul.")] if NEW else []
NEWER = [f"{node} = {word!r}" for node, word in product(NODES, ("ieee", "tf32"))]
NEWER += ["torch.backends.mkldnn.matmul.fp32_precision = 'bf16'"] if NEW else []
ALREADY = "torch.backends.cuda.matmul.fp32_precision = 'tf32'"
"""What gputune has set as well, and in the older interface, too."""


@pytest.mark.parametrize("setting", [one for one in OLDER + NEWER if one != ALREADY])
def test_everything_reads_as_without_gputune(setting: str) -> None:
    assert torch_child.ask(SET_BY_GPUTUNE + setting + ALL_READ) == torch_child.ask(setting + ALL_READ)


@pytest.mark.exhaustive
@pytest.mark.parametrize("settings", product(OLDER + NEWER, OLDER + NEWER))
def test_no_read_raises_that_does_not_without_gputune(settings: tuple[str, str]) -> None:
    lines = "\n".join(settings)
    plain = torch_child.ask(lines + ALL_READ)
    tuned = torch_child.ask(SET_BY_GPUTUNE + lines + ALL_READ)
    assert all(one != "raises" or other == "raises" for one, other in zip(tuned, plain, strict=True))
    assert tuned == plain or ALREADY in settings


@pytest.mark.parametrize(
    ("setting", "row"),
    [
        ("torch.backends.cuda.matmul.allow_tf32 = False", ["ieee", "the program later changed it from tf32"]),
        ("torch.backends.cuda.matmul.allow_tf32 = True", ["tf32", "the program later set it itself"]),
        ("torch.set_float32_matmul_precision('medium')", ["tf32", "the program later set it itself"]),
        *(
            [("torch.backends.fp32_precision = 'ieee'", ["ieee", "the program later changed it from tf32"])]
            if NEW
            else []
        ),
        *([("torch.backends.fp32_precision = 'tf32'", ["tf32", "the program later set it itself"])] if NEW else []),
    ],
)
def test_the_row_tells_what_the_program_set(setting: str, row: list[str]) -> None:
    assert torch_child.ask(f"{SET_BY_GPUTUNE}\n{setting}\n{ROW}") == ["changed-later", *row]


@pytest.mark.parametrize(
    "lines",
    [
        "old = torch.backends.cuda.matmul.allow_tf32; {0}; torch.backends.cuda.matmul.allow_tf32 = old",
        "with torch.backends.cudnn.flags(enabled=False): pass",
        *(
            [
                "with torch.backends.flags(fp32_precision='ieee'): assert not b.cuda.matmul.allow_tf32",
                "old = b.cuda.matmul.fp32_precision; b.cuda.matmul.fp32_precision = 'ieee'\n"
                "assert not b.cuda.matmul.allow_tf32; b.cuda.matmul.fp32_precision = old",
                "old = b.cuda.matmul.fp32_precision; b.cuda.matmul.fp32_precision = old",
            ]
            if NEW
            else []
        ),
    ],
)
def test_what_a_program_sets_for_a_while_and_sets_back_is_gputunes_again(lines: str) -> None:
    lines = lines.format("torch.backends.cuda.matmul.allow_tf32 = False")
    read = ALL_READ.replace(", b.mkldnn.matmul", "")
    before = torch_child.ask(SET_BY_GPUTUNE + read)
    assert torch_child.ask(f"{SET_BY_GPUTUNE}\nb = torch.backends\n{lines}\n{read}") == before
    assert torch_child.ask(f"{SET_BY_GPUTUNE}\nb = torch.backends\n{lines}\n{ROW}")[:2] == ["applied", "tf32"]


def test_gputune_leaves_the_flag_alone_from_then_on() -> None:
    answer = torch_child.ask(f"""{SET_BY_GPUTUNE}
torch.set_float32_matmul_precision("high")
row = flags.set_for_program("matmul_precision", "ieee", {{}})
answer = [row.status, torch.get_float32_matmul_precision()]
""")
    assert answer == ["kept-user", "high"]


def test_gputunes_own_switching_is_not_the_programs() -> None:
    """As the search does between blocks of steps."""
    answer = torch_child.ask(f"""{SET_BY_GPUTUNE}
from gputune.knobs import load
load("matmul_precision").apply("ieee")
load("matmul_precision").apply("tf32")
{ROW}
""")
    assert answer[0] == "applied"


def test_a_compile_is_not_the_programs() -> None:
    """torch.compile sets matmuls back to what they were before it."""
    answer = torch_child.ask(f"""{SET_BY_GPUTUNE}
torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
{ROW}
""")
    assert answer[0] == "applied"


def test_a_compiled_function_may_set_flags() -> None:
    answer = torch_child.ask(f"""{SET_BY_GPUTUNE}
@torch.compile(backend="eager")
def doubled(x):
    torch.set_float32_matmul_precision("highest")
    return x * 2
total = float(doubled(torch.ones(2)).sum())
{ROW}
answer = [total, *answer[:2]]
""")
    assert answer == [4.0, "changed-later", "ieee"]


@pytest.mark.parametrize("setting", ["torch.backends.cudnn.allow_tf32 = True", *NEWER])
def test_convolutions_are_the_programs_too(setting: str) -> None:
    ours = SET_BY_GPUTUNE.replace('"matmul_precision", "tf32"', '"cudnn_tf32", False').replace('"ieee"', "True")
    ours = ours.replace('"tf32"', "False")
    if "cuda.matmul" in setting or "mkldnn" in setting:
        assert torch_child.ask(f"{ours}\n{setting}\n{ROW}")[0] == "applied"
    else:
        assert torch_child.ask(ours + setting + ALL_READ) == torch_child.ask(setting + ALL_READ)


def test_the_wrapped_setters_are_torchs_again_when_it_is_undone() -> None:
    names: Any = torch_child.ask("""
from gputune.knobs._tf32 import SETTERS
from gputune.live.nets import later_settings
def setters():
    found = [getattr(torch._C, name) for name in SETTERS if hasattr(torch._C, name)]
    return [*found, vars(type(torch.backends.cudnn))["allow_tf32"].setter]
before = setters()
undo = later_settings.setters_wrapped()
wrapped = setters()
undo()
answer = [[a is not b for a, b in zip(before, wrapped)], [a is b for a, b in zip(before, setters())]]
""")
    assert all(map(all, names))

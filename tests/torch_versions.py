"""Sets and reads back TF32 (`gputune/settings/_tf32.py`) on other torch releases, from many starting states.

python tests/torch_versions.py 2.4.1 2.15.0 [/path/to/python ...]

A version (N.N or N.N.N) is installed with pip into a virtual environment of its own, with all that it needs, and
removed before the next one: up to 10 GB at a time under TMPDIR, and what pip chooses here, so the CUDA wheel where
none else was made available. Anything else is an interpreter, 3.10 or newer, in which a torch is importable (or a
script that starts one). No GPU is needed. The flags belong to the process, so every case runs in a fresh one, and
gputune itself need not be importable there. A line for each torch, one more for each failure; exit code 1 where
anything failed.

This is for developers; pytest does not collect it.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import types
import venv
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HOUSE = Path(__file__).resolve().parents[1] / "gputune"
OVERRIDE = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")

EVERYWHERE = {
    "untouched": "",
    f"{OVERRIDE}=1": "",
    "cuda.matmul.allow_tf32 = True": "b.cuda.matmul.allow_tf32 = True",
    "cuda.matmul.allow_tf32 = False": "b.cuda.matmul.allow_tf32 = False",
    "cudnn.allow_tf32 = True": "b.cudnn.allow_tf32 = True",
    "cudnn.allow_tf32 = False": "b.cudnn.allow_tf32 = False",
    "precision highest": "torch.set_float32_matmul_precision('highest')",
    "precision high": "torch.set_float32_matmul_precision('high')",
    "precision medium": "torch.set_float32_matmul_precision('medium')",
    "precision medium, allow_tf32 = True": (
        "torch.set_float32_matmul_precision('medium'); b.cuda.matmul.allow_tf32 = True"
    ),
}
WITH_NODES = {
    "cuda.matmul tf32": "b.cuda.matmul.fp32_precision = 'tf32'",
    "cuda.matmul ieee": "b.cuda.matmul.fp32_precision = 'ieee'",
    "cudnn.conv and .rnn ieee": "b.cudnn.conv.fp32_precision = b.cudnn.rnn.fp32_precision = 'ieee'",
    "cudnn.conv ieee, .rnn as it is": "b.cudnn.conv.fp32_precision = 'ieee'",
    "root tf32": "b.fp32_precision = 'tf32'",
    "root ieee": "b.fp32_precision = 'ieee'",
    "root bf16": "b.fp32_precision = 'bf16'",
    "cudnn tf32": "b.cudnn.fp32_precision = 'tf32'",
    "cudnn ieee": "b.cudnn.fp32_precision = 'ieee'",
    "mkldnn.matmul bf16": "b.mkldnn.matmul.fp32_precision = 'bf16'",
    "mkldnn.matmul tf32": "b.mkldnn.matmul.fp32_precision = 'tf32'",
    "mkldnn.matmul bf16, cuda.matmul tf32": (
        "b.mkldnn.matmul.fp32_precision = 'bf16'; b.cuda.matmul.fp32_precision = 'tf32'"
    ),
}


@dataclass(frozen=True)
class Case:
    start: str
    matmul: bool
    cudnn: bool

    def __str__(self) -> str:
        return f"{self.start} -> matmul {self.matmul}, cudnn {self.cudnn}"


@dataclass(frozen=True)
class Outcome:
    """What is wrong after a case; `conflict` where it is a contradiction that the user had already made."""

    problems: list[str]
    conflict: bool = False


# In the interpreter that is asked about.


def about() -> dict[str, Any]:
    import torch

    return {"version": str(torch.__version__), "nodes": has_nodes(torch)}


def run_case(case: Case) -> Outcome:
    with quiet():
        import torch

        exec({**EVERYWHERE, **WITH_NODES}[case.start], {"torch": torch, "b": torch.backends})
    tf32 = load_tf32()
    with quiet():
        before = onednn(torch)
        # Only here are the legacy getters read this early: 2.9.0 warns in the first of them, and then never again.
        torn = before == "bf16" and "get_float32_matmul_precision" in raising(torch)
    # Not quiet: whatever is warned of here reaches stderr, where the parent looks.
    tf32.set_matmul(case.matmul)
    tf32.set_cudnn(case.cudnn)
    read = {"matmul()": tf32.matmul(), "cudnn()": tf32.cudnn()}
    with quiet():
        problems = [*wrong_values(torch, case, read), *wrong_onednn(case, before, onednn(torch))]
        errors = raising(torch)
    # A CPU matmul in bf16 under "highest" is refused by torch, and only the user may give either up.
    conflict = torn and not case.matmul and errors == ["get_float32_matmul_precision"]
    return Outcome(problems + [f"{name} raises" for name in errors], conflict and not problems)


def has_nodes(torch: Any) -> bool:
    return hasattr(torch._C, "_get_fp32_precision_getter")


def load_tf32() -> Any:
    """The module, below a private parent: gputune is not imported."""
    sys.modules["_gputune"] = parent = types.ModuleType("_gputune")
    parent.__path__ = [str(HOUSE)]
    return importlib.import_module("_gputune.settings._tf32")


def legacy_getters(torch: Any) -> dict[str, Any]:
    return {
        "cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
        "get_float32_matmul_precision": lambda: torch.get_float32_matmul_precision() != "highest",
        "cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
    }


def raising(torch: Any) -> list[str]:
    """The legacy getters that raise."""
    names = []
    for name, getter in legacy_getters(torch).items():
        try:
            getter()
        except RuntimeError:
            names.append(name)
    return names


def wrong_values(torch: Any, case: Case, read: dict[str, Any]) -> list[str]:
    """Every view that says something else than was wanted; getters that raise are no part of it."""
    silent = raising(torch)
    seen = read | {name: getter() for name, getter in legacy_getters(torch).items() if name not in silent}
    if has_nodes(torch):
        backends = torch.backends
        nodes = {
            "cuda.matmul": backends.cuda.matmul,
            "cudnn.conv": backends.cudnn.conv,
            "cudnn.rnn": backends.cudnn.rnn,
        }
        seen |= {f"{name} node": node.fp32_precision == "tf32" for name, node in nodes.items()}
    wanted = {name: case.cudnn if name.startswith("cudnn") else case.matmul for name in seen}
    return [f"{name} is {value}" for name, value in seen.items() if value is not wanted[name]]


def onednn(torch: Any) -> str:
    """The effective precision of an FP32 matmul on the CPU; "ieee" where nobody set it."""
    word = torch.backends.mkldnn.matmul.fp32_precision if has_nodes(torch) else "none"
    return "ieee" if word == "none" else str(word)


def wrong_onednn(case: Case, before: str, after: str) -> list[str]:
    """The CPU keeps its precision; only turning TF32 off may raise it to "ieee"."""
    allowed = {before} if case.matmul else {before, "ieee"}
    return [] if after in allowed else [f"mkldnn.matmul went from {before} to {after}"]


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# In the interpreter that was started.


def ask(python: str, question: str, start: str = "") -> tuple[str, str]:
    """What a fresh process writes to stdout and to stderr."""
    environ = {name: value for name, value in os.environ.items() if name not in (OVERRIDE, "PYTHONWARNINGS")}
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if start.startswith(OVERRIDE):
        environ[OVERRIDE] = "1"
    command = [python, __file__, "--child", question]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    return result.stdout, result.stderr.strip()


def outcome(python: str, case: Case) -> Outcome:
    out, errors = ask(python, json.dumps(asdict(case)), case.start)
    try:
        result = Outcome(**json.loads(out))
    except ValueError:
        return Outcome([f"no answer: {errors[-500:]}"])
    return Outcome([*result.problems, f"on stderr: {errors}"]) if errors else result


def check(python: str) -> int:
    """Runs every case on one interpreter and prints what came of it; 1 where something failed."""
    out, errors = ask(python, "about")
    if not out:
        print(f"{python}: no torch: {errors[-500:]}")
        return 1
    torch = json.loads(out)
    starts = [*EVERYWHERE, *(WITH_NODES if torch["nodes"] else {})]
    cases = [Case(*values) for values in product(starts, (True, False), (True, False))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = dict(zip(cases, pool.map(lambda case: outcome(python, case), cases), strict=True))
    failures = {case: found for case, found in outcomes.items() if found.problems and not found.conflict}
    print(f"torch {torch['version']}: {len(cases)} cases, {len(failures)} failures", flush=True)
    for case, found in outcomes.items():
        if found.problems:
            print(f"  {'as before' if found.conflict else 'FAILED'}: {case}: {'; '.join(found.problems)}", flush=True)
    return min(len(failures), 1)


def check_version(version: str) -> int:
    """Check a version of torch, installed for it alone. Returns 1 for a failure, also where it cannot be installed."""
    with TemporaryDirectory(prefix=f"torch-{version}-") as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", f"torch=={version}"]
        result = subprocess.run(install, capture_output=True, text=True, check=False)
        if result.returncode:
            print(f"torch {version}: not installed: {result.stderr.strip().splitlines()[-1]}", flush=True)
            return 1
        return check(python)


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__)
        return 2
    if arguments[0] != "--child":
        return max(check_version(each) if VERSION.fullmatch(each) else check(each) for each in arguments)
    question = arguments[1]
    print(json.dumps(about() if question == "about" else asdict(run_case(Case(**json.loads(question))))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

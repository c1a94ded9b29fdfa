"""Is everything that torch.compile needs installed?

For a GPU it generates Triton kernels, whose launchers it builds with a C compiler (CC, gcc or clang) and Python's
headers; for the CPU it generates C++, with the same headers. Slim images have neither, and torch.compile fails at the
first call. It keeps compiled code in TORCHINDUCTOR_CACHE_DIR, by default a folder below TMPDIR.

Source: Triton, runtime/build.py; torch._inductor.
"""

import re
import shlex

from gputune.checks._answers import Facts, Finding, Findings, Measurements, not_applicable, ok, unread, warning
from gputune.checks._questions import number
from gputune.checks._remedies import pip, room, torch_build, torch_index, typed
from gputune.facts.libraries import Compile

FIRST = (2, 0)
VARIABLES = ("CC", "CXX")


def check(facts: Facts, measurements: Measurements) -> Findings:
    needs, torch = facts.libraries.compile, number(facts.libraries.torch)
    if needs is None:
        yield unread(facts, "libraries.compile", "what torch.compile needs")
    elif torch is not None and torch < FIRST:
        yield not_applicable(f"torch {facts.libraries.torch} has no torch.compile")
    else:
        missing = list(_missing(facts, needs, cuda=bool(facts.libraries.cuda and facts.gpus)))
        yield from missing or [ok("compiler, headers and cache are available")]


def _missing(facts: Facts, needs: Compile, cuda: bool) -> Findings:
    if cuda and needs.compiler is None:
        yield _compiler(facts, "C", "CC")
    if not cuda and needs.compiler_cxx is None:
        yield _compiler(facts, "C++", "CXX")
    if not needs.headers:
        of_system = re.fullmatch(r"/usr/include/(python3\.\d+)", needs.include or "")
        remedy = _install(facts, f"{of_system[1] if of_system else 'python3'}-dev")
        yield warning(f"torch.compile finds no Python.h in {needs.include}", remedy, "Python.h")
    if cuda and needs.triton is None:
        # Pip then installs what the installed torch requires and is missing.
        install = f"{pip(facts)} install torch=={facts.libraries.torch}{torch_index(torch_build(facts))}"
        remedy = typed(install, note="installs what this torch requires and is missing, such as triton")
        yield warning("torch.compile finds no Triton", remedy, "triton")
    if not needs.cache_writable:
        problem = f"cannot write its cache to {needs.cache}" if needs.cache else "cannot choose a folder for its cache"
        yield warning(f"torch.compile {problem}", _cache(facts), "TORCHINDUCTOR_CACHE_DIR")


def _compiler(facts: Facts, language: str, variable: str) -> Finding:
    if named := facts.environment.get(variable):
        message = f"torch.compile would call {variable}={named}, which does not exist"
        return warning(message, typed(f"unset {variable}", note="or install it"), variable)
    what = f"{language} compiler"
    return warning(f"torch.compile finds no {what}", _install(facts, "gcc g++ libc6-dev"), what)


def _install(facts: Facts, packages: str) -> str:
    """Install packages of Debian and Ubuntu; few images have a sudo, with or without root."""
    sudo = "" if facts.process.uid == 0 or facts.container.kind else "sudo "
    install = f"{sudo}apt-get install -y --no-install-recommends {packages}"
    note = "for Debian and Ubuntu" + ("; to keep it, RUN it in the image's Dockerfile" if facts.container.kind else "")
    return typed(f"{sudo}apt-get update", install, root=True, note=note)


def _cache(facts: Facts) -> str:
    folder = room(facts)
    if folder is None:
        return "mount a folder that can be written to, and name it in TORCHINDUCTOR_CACHE_DIR"
    path = shlex.quote(f"{folder}/torchinductor")
    return typed(f"export TORCHINDUCTOR_CACHE_DIR={path}", note="or another folder with room, best one that stays")

"""Is everything that torch.compile needs installed?

For a GPU it generates Triton kernels, whose launchers it builds with a C compiler (CC, gcc or clang) and Python's
headers; for the CPU it generates C++, with the same headers. Slim images have neither, and torch.compile fails at the
first call. It keeps compiled code in TORCHINDUCTOR_CACHE_DIR, by default a folder below TMPDIR.

Source: Triton, runtime/build.py; torch._inductor.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, not_applicable, ok, unread, warning
from gputune.checks._questions import number
from gputune.facts.libraries import Compile

INSTALL = "apt-get update && apt-get install -y --no-install-recommends gcc g++ libc6-dev"
HEADERS = "apt-get update && apt-get install -y --no-install-recommends python3-dev  # for Debian's or Ubuntu's Python"
CACHE = "export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor  # or another folder that can be written to"
FIRST = (2, 0)
VARIABLES = ("CC", "CXX")


def check(facts: Facts, measurements: Measurements) -> Findings:
    needs, torch = facts.libraries.compile, number(facts.libraries.torch)
    if needs is None:
        yield unread(facts, "libraries.compile", "what torch.compile needs")
    elif torch is not None and torch < FIRST:
        yield not_applicable(f"torch {facts.libraries.torch} has no torch.compile")
    else:
        missing = list(_missing(needs, facts.environment, cuda=bool(facts.libraries.cuda and facts.gpus)))
        yield from missing or [ok("compiler, headers and cache are available")]


def _missing(needs: Compile, environment: dict[str, str], cuda: bool) -> Findings:
    if cuda and needs.compiler is None:
        yield _compiler("C", "CC", environment)
    if not cuda and needs.compiler_cxx is None:
        yield _compiler("C++", "CXX", environment)
    if not needs.headers:
        yield warning(f"torch.compile finds no Python.h in {needs.include}", HEADERS, "Python.h")
    if cuda and needs.triton is None:
        yield warning("torch.compile finds no Triton", "pip install triton, in the version torch requires", "triton")
    if not needs.cache_writable:
        problem = f"cannot write its cache to {needs.cache}" if needs.cache else "cannot choose a folder for its cache"
        yield warning(f"torch.compile {problem}", CACHE, "TORCHINDUCTOR_CACHE_DIR")


def _compiler(language: str, variable: str, environment: dict[str, str]) -> Finding:
    if named := environment.get(variable):
        message = f"torch.compile would call {variable}={named}, which does not exist"
        return warning(message, f"unset {variable}, or install it", variable)
    return warning(f"torch.compile finds no {language} compiler", INSTALL, f"{language} compiler")

"""Is a profiler or sanitizer injected into every program?

compute-sanitizer, Nsight and CUPTI tools enter a program through these variables. Left behind in a shell or an image,
they slow down every program, by up to a factor of a hundred.

Source: CUDA C++ Programming Guide and NVTX, injection variables; ld.so(8), LD_PRELOAD.
"""

import re

from gputune.checks._answers import Facts, Findings, Measurements, ok, unset, warning

INJECTS = re.compile(r"(CUDA|NVTX)_INJECTION(32|64)_PATH|NV_SANITIZER\w*|NSYS_PROFILING_SESSION_ID")
PRELOADED = re.compile(r"injection|sanitizer|cupti", re.IGNORECASE)


def check(facts: Facts, measurements: Measurements) -> Findings:
    left = {name: value for name, value in facts.environment.items() if INJECTS.fullmatch(name) and value}
    preloaded = facts.environment.get("LD_PRELOAD", "")
    for name, value in left.items():
        yield unset(f"injected into every program: {name}={value}", name)
    if PRELOADED.search(preloaded):
        remedy = "remove the tool's libraries from LD_PRELOAD"
        yield warning(f"injected into every program: LD_PRELOAD={preloaded}", remedy, "LD_PRELOAD")
    elif not left:
        yield ok("no profiler or sanitizer is injected")

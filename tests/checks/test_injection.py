import pytest
from recorded import found

from gputune.checks import injection


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_INJECTION64_PATH", "/opt/nsight/libToolsInjection64.so"),
        ("CUDA_INJECTION32_PATH", "/opt/nsight/libToolsInjection32.so"),
        ("NVTX_INJECTION64_PATH", "/opt/nsight/libToolsInjection64.so"),
        ("NV_SANITIZER_INJECTION_PORT_BASE", "49152"),
        ("NSYS_PROFILING_SESSION_ID", "4711"),
    ],
)
def test_a_tool_that_gets_into_every_program_is_a_warning(name, value):
    [one] = found(injection, environ={name: value})
    assert (one.severity, one.subject) == ("WARNING", name)
    assert f"{name}={value}" in one.message
    assert one.remedy.startswith(f"unset {name}  # ")
    assert f"docker run --env {name}= IMAGE" in one.remedy


@pytest.mark.parametrize(
    "value",
    [
        "/opt/nsight/libToolsInjectionProxy64.so",
        "/opt/sanitizer/libsanitizer-collection.so",
        "/usr/lib/libjemalloc.so:/opt/cuda/libCUPTI.so",
    ],
)
def test_a_tool_that_is_preloaded_is_a_warning(value):
    [one] = found(injection, environ={"LD_PRELOAD": value})
    assert (one.severity, one.subject) == ("WARNING", "LD_PRELOAD")
    assert f"LD_PRELOAD={value}" in one.message
    assert one.remedy.startswith(("unset LD_PRELOAD  # ", "export LD_PRELOAD=/usr/lib/"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_INJECTION64_PATH", ""),
        ("MY_CUDA_INJECTION64_PATH", "/opt/tool.so"),
        ("CUDA_INJECTION64_PATHS", "/opt/tool.so"),
        ("LD_AUDIT", "/opt/audit.so"),
        ("LD_PRELOAD", ""),
        ("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"),
        ("LD_LIBRARY_PATH", "/usr/local/cuda/extras/CUPTI/lib64"),
        ("NSIGHT_SYSTEMS_VERSION", "2025.5"),
    ],
)
def test_what_injects_nothing(name, value):
    assert [one.severity for one in found(injection, environ={name: value})] == ["OK"]


@pytest.mark.parametrize("preload", [{}, {"LD_PRELOAD": "/opt/libToolsInjectionProxy64.so"}])
def test_each_has_its_own_finding(preload):
    names = {"NVTX_INJECTION64_PATH": "/a.so", "CUDA_INJECTION64_PATH": "/a.so"}
    warned = found(injection, environ={**names, **preload})
    assert [one.subject for one in warned] == ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", *preload]
    assert {one.severity for one in warned} == {"WARNING"}

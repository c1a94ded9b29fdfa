"""The torch that is installed: its version and build, what it was compiled for, and what torch.compile needs."""

from dataclasses import replace

import pytest
from recorded import EIGHT, ONE, RecordedHost, says, table

from gputune.checks import torch_architecture
from gputune.host import Unreadable

PIP = "/opt/torch/.venv/bin/python3 -m pip"
CU130 = "--index-url https://download.pytorch.org/whl/cu130"
NO_TORCH = {"type": "ModuleNotFoundError", "name": "torch", "message": "No module named 'torch'"}
SILENT = Unreadable("no answer within 120 s")
NOT_FOUND = "ImportError: cannot open shared object file"


def version(severity, torch, message="", remedy="", **more):
    return says(severity, message, remedy, torch=torch, **more)


TO_REPAIR = (" -m pip install --force-reinstall torch", "-c 'import torch' shows the whole error")
test_torch_version = table(
    "torch_version",
    {
        number: version("WARNING", {"torch": number}, number, f"^{PIP} install --upgrade torch {CU130}  # ")
        for number in ("2.3.1+cu121", "2.0.0", "1.13.1")
    },
    {
        number: version("OK", {"torch": number})
        for number in ("2.4.0", "2.15.0+cu130", "2.13.0a0+git1", "3.0.0")
    },
    {
        "not installed": version(
            "WARNING", {"torch": None, "gaps": {"torch": NO_TORCH}},
            "=torch is not installed in /opt/torch/.venv/bin/python3",
            f"={PIP} install torch {CU130}  # or name the Python that has it: gputune check --python PATH",
        ),
        "cannot be imported": version(
            "ERROR", {"torch": None, "gaps": {"torch": NOT_FOUND}},
            f"=torch cannot be imported: import torch: {NOT_FOUND}", TO_REPAIR,
        ),
        "crashes": version(
            "ERROR", Unreadable("python ended (exit code -11)", "killed"),
            "=torch cannot be imported: python ended (exit code -11)", TO_REPAIR,
        ),
        "gives no reason": version("UNKNOWN", {"torch": None, "executable": None}),
        "does not answer": version("UNKNOWN", SILENT, "no answer within 120 s"),
        "something else fails": version(
            "UNKNOWN", Unreadable("ModuleNotFoundError: No module named 'typing_extensions'"), "typing_extensions"
        ),
        "no number": version("UNKNOWN", {"torch": "main"}),
        "no folder for temporary files": version(
            "ERROR",
            Unreadable("import torch: FileNotFoundError: No usable temporary directory found", "import_failed"),
            "", "^mkdir -p /root/.cache/tmp && export TMPDIR=/root/.cache/tmp", closed=["/tmp"],
        ),
    },
)  # fmt: skip

test_torch_cuda_build = table(
    "torch_cuda_build",
    {
        "no CUDA beside a GPU": says(
            "ERROR", "2.13.0+cpu", f"^{PIP} uninstall -y torch && {PIP} install torch {CU130}  # ",
            facts={"libraries.torch": "2.13.0+cpu", "libraries.cuda": None, "libraries.device_count": None},
        ),
        "a device file is a GPU": says("ERROR", machine="cpu-only", files={"/dev/nvidia0": ""}),
        "no GPU": says("NOT_APPLICABLE", machine="cpu-only"),
        "WSL's device may be any maker's": says("NOT_APPLICABLE", machine="cpu-only", files={"/dev/dxg": ""}),
        "no answer": says("UNKNOWN", "no answer within 120 s", torch=SILENT),
        "CUDA": says("OK"),
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "capability", "runs"),
    [
        ("sm_90", (9, 0), True), ("sm_86", (8, 9), True), ("sm_80", (8, 6), True), ("sm_89", (8, 6), False),
        ("sm_80", (9, 0), False), ("sm_90", (10, 0), False), ("sm_100", (10, 3), True), ("sm_100", (12, 0), False),
        ("sm_120", (12, 1), True), ("compute_80", (9, 0), True), ("compute_90", (12, 0), True),
        ("compute_90", (9, 0), True), ("compute_90", (8, 9), False), ("sm_90a", (9, 0), True),
        ("compute_90a", (10, 0), False), ("sm_100f", (10, 3), True), ("compute_100f", (12, 0), False),
        ("gfx942", (9, 0), False),
    ],
)  # fmt: skip
def test_what_runs_where(name, capability, runs):
    assert torch_architecture.runs(name, capability) is runs


def kernels(severity, message="", remedy="", capability="9.0", machine=ONE, **libraries):
    facts = {"gpus.*.compute_capability": capability} | {f"libraries.{name}": one for name, one in libraries.items()}
    return says(severity, message, remedy, machine=machine, facts=facts)


test_torch_architecture = table(
    "torch_architecture",
    {
        f"no kernels for {target}": kernels("ERROR", f"needs {target}", target, capability)
        for capability, target in {"6.1": "sm_61", "7.0": "sm_70", "11.0": "sm_110", "13.0": "sm_130"}.items()
    },
    {
        "PTX helps": kernels("OK", "compute_90", capability="13.0", architectures=("sm_90", "compute_90")),
        "each GPU": kernels([f"ERROR GPU {index}" for index in range(8)], capability="7.0", machine=EIGHT),
        "no capability": kernels("UNKNOWN", capability=None),
        "no list": kernels("UNKNOWN", architectures=()),
        "no torch": kernels("UNKNOWN", torch=None),
        "no CUDA": kernels("NOT_APPLICABLE", cuda=None),
    },
)


def compiling(expected, message="", remedy="", machine=ONE, *, torch=None, environ=None, closed=(), **needs):
    environ = {"CC": None, "CXX": None, **(environ or {})}
    torch = {**(torch or {}), "compile": {**RecordedHost(machine).torch["compile"], **needs}}
    return says(expected, message, remedy, machine=machine, torch=torch, environ=environ, closed=closed)


INSTALL, CACHE, CXX = "apt-get install -y --no-install-recommends ", "TORCHINDUCTOR_CACHE_DIR", "WARNING C++ compiler"
NO_FOLDER = f"=mount a folder that can be written to, and name it in {CACHE}"
test_compile_needs = table(
    "compile_needs",
    {
        "no C compiler": compiling(["WARNING C compiler"], "no C compiler", f"{INSTALL}gcc", compiler=None),
        "no Triton": compiling(
            ["WARNING triton"], "no Triton", f"^{PIP} install torch==2.11.0+cu130 --index-url ", triton=None
        ),
        "a CPU needs no C compiler": compiling("OK", machine="cpu-only", compiler=None),
        "a CPU needs no Triton": compiling("OK", machine="cpu-only", triton=None),
        "no such CC": compiling(
            ["WARNING CC"], "CC=icx, which does not exist", "=unset CC  # or install it",
            environ={"CC": "icx"}, compiler=None,
        ),
        "no such CXX": compiling(
            ["WARNING CXX"], "CXX=icx, which does not exist", "=unset CXX  # or install it", "cpu-only",
            environ={"CXX": "icx"}, compiler_cxx=None,
        ),
        "another variable": compiling(["WARNING C compiler"], environ={"CXX": "icx"}, compiler=None),
        "an empty CC": compiling(["WARNING C compiler"], environ={"CC": ""}, compiler=None),
        "Triton builds with C alone": compiling("OK", compiler_cxx=None),
        "a CPU needs C++": compiling([CXX], "", "g++", "cpu-only", compiler_cxx=None),
        "with a CUDA torch, too": compiling(
            [CXX], "", "g++", "cpu-only", torch={"cuda": "13.0", "devices": []}, compiler_cxx=None
        ),
        "a torch without CUDA": compiling([CXX], torch={"cuda": None}, compiler_cxx=None, triton=None),
        "all that is missing": compiling(
            ["WARNING C compiler", "WARNING Python.h", "WARNING triton", f"WARNING {CACHE}"],
            compiler=None, headers=False, triton=None, closed=["/"],
        ),
    },
    {
        f"torch {number}": compiling(severity, told, torch={"torch": number}, triton=None)
        for number, severity, told in [
            ("1.13.1", "NOT_APPLICABLE", "^torch 1.13.1 has no torch.compile"), ("2.0.0", "WARNING", ""),
            ("2.11.0", "WARNING", ""), ("custom", "WARNING", ""),
        ]
    },
    {
        f"{machine} without headers": compiling(
            ["WARNING Python.h"], "/usr/include/python3",
            (f"{INSTALL}python3.", "-dev  # as root; for Debian"), machine, headers=False,
        )
        for machine in (ONE, "cpu-only")
    },
    {
        f"user {uid}, in {kind}": replace(
            compiling(["WARNING C compiler"], "", f"^{sudo}apt-get update && {sudo}apt-get ", compiler=None),
            facts={"process.uid": uid, "container.kind": kind},
        )
        for uid, kind, sudo in [(0, None, ""), (1000, None, "sudo "), (1000, "docker", "")]
    },
    {
        f"{machine}, {closed} is closed, {cache}": compiling(
            [f"WARNING {CACHE}"], cache or "cannot choose a folder for its cache", remedy, machine,
            cache=cache, closed=[closed],
        )
        for machine in (ONE, "cpu-only")
        for cache, closed, remedy in [
            ("/home/me/cache", "/", NO_FOLDER), (None, "/", NO_FOLDER),
            (None, "/home/me", f"^export {CACHE}=/tmp/torchinductor  # "),
        ]
    },
)  # fmt: skip

OWN = RecordedHost().torch["folder"]
GPUTUNE, PYTHON = "/opt/gputune/bin/python", "/home/me/venv/bin/python"
THEIRS = "/home/me/venv/lib/python3.11/site-packages/torch"


def python(severity, where, message="", remedy="", *, executable=GPUTUNE, folder=OWN, path=PYTHON, subject=...):
    """gputune runs under `executable`, whose torch is in `folder`; `python` answers that its own is in `where`."""
    answer = where if isinstance(where, Unreadable) else {"folder": where}
    return says(
        severity, message, remedy, subject=subject, torch={"executable": executable, "folder": folder},
        environ={"PATH": "/home/me/venv/bin"}, files={path: ""}, where=answer, own_python=GPUTUNE,
    )  # fmt: skip


test_interpreter = table(
    "interpreter",
    {
        path: python("WARNING", THEIRS, (OWN, THEIRS), f"=gputune check --python {path}", path=path, subject=path)
        for path in (PYTHON, f"{PYTHON}3")
    },
    {
        "gputune has no torch": python("WARNING", THEIRS, "no torch", folder=None),
        "the same torch": python("OK", THEIRS, f"=gputune examined {THEIRS}", folder=THEIRS),
        "another was asked for": python(
            "OK", THEIRS, f"=gputune examined {OWN}, as --python requested", executable="/opt/bin/python"
        ),
        "python has no torch": python("OK", None),
        "no python": python("OK", THEIRS, path="/elsewhere/python"),
        "python does not answer": python(
            "UNKNOWN", Unreadable("it gave no answer within 10 s"), "no answer within 10 s"
        ),
        "no torch at all": python("OK", None, GPUTUNE, folder=None),
        "no answer": says("UNKNOWN", "no answer", torch=Unreadable("no answer")),
    },
    {
        f"{name} here": says(
            "WARNING", subject=name, files={name: ""}, torch={"executable": GPUTUNE}, own_python=GPUTUNE
        )
        for name in ("torch.py", "torch/__init__.py")
    },
)

NAMESAKE = f"={PIP} uninstall -y pynvml && {PIP} install --force-reinstall nvidia-ml-py"
WITHOUT_TORCH = {"torch": None, "gaps": {"torch": "import torch: no module"}}
test_pynvml_package = table(
    "pynvml_package",
    {
        number: says("WARNING", f"pynvml {number} ", NAMESAKE, torch={"pynvml": number})
        for number in ("8.0.4", "11.5.0", "13.0.1")
    },
    {
        "an interpreter of unknown place": says(
            "WARNING", "", "^python3 -m pip uninstall", torch={"pynvml": "11.5.0", "executable": None}
        ),
        "without torch": says("WARNING", torch={**WITHOUT_TORCH, "pynvml": "11.5.0"}),
        "neither": says("OK", torch={**WITHOUT_TORCH, "pynvml": None}),
        "no answer": says("UNKNOWN", "no answer", torch=SILENT),
        "no list": says("UNKNOWN", "no answer", torch={"gaps": {"pynvml": "OSError: no answer"}}),
    },
)

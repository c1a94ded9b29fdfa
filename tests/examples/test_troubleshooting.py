"""docs/troubleshooting.md quotes texts that people search for: torch's as the installed one has them, gputune's as its
code makes them now.
"""

import ast
import mmap
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from making import program
from recorded import found
from understood import parsed

from gputune import checks
from gputune.errors import ProfileError
from gputune.host import Unreadable
from gputune.live.applied import Reason
from gputune.profile import Fingerprint, load
from gputune.report.programs import untold
from gputune.runtime.locate import located
from gputune.trials.result import TuneResult

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
WORDS = " ".join(PAGE.replace("`", "").split())
TORCH = Path(find_spec("torch").origin).parent

QUOTED = {
    "utils/data/dataloader.py": [
        "This DataLoader will create ", " worker processes in total. ", "Our suggested max number of worker in current",
        ", which is smaller than what this DataLoader is going to create.", "exited unexpectedly",
        "Too many open files. Communication with the workers is no longer possible.",
        "torch.multiprocessing.set_sharing_strategy('file_system')",
    ],
    "_inductor/compile_fx.py": [
        "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled. "
        "Consider setting torch.set_float32_matmul_precision('high') for better performance.",
    ],
    "_inductor/exc.py": ["No working C++ compiler found", "InvalidCxxCompiler"],
    "_dynamo/convert_frame.py": ["torch._dynamo hit config."],
    "amp/grad_scaler.py": [
        "Attempting to unscale FP16 gradients.",
        "unscale_() has already been called on this optimizer since the last update().",
    ],
    "cuda/__init__.py": ["Torch not compiled with CUDA enabled"],
    "distributed/run.py": [
        "Setting OMP_NUM_THREADS environment variable for each process to be ", " in default",
    ],
    "../triton/runtime/build.py": ["Failed to find C compiler. Please specify via CC environment variable"],
    "lib/libtorch_python.so": [
        "is killed by signal: ", "It is possible that dataloader's workers are out of shared memory",
    ],
    "lib/libtorch_cpu.so": ["unable to allocate shared memory(shm) for file <"],
    "lib/libc10_cuda.so": [
        "CUDA initialization: ", "Found no NVIDIA driver on your system.", "No CUDA GPUs are available",
        "The NVIDIA driver on your system is too old (found version ", "CUDA out of memory. Tried to allocate",
        "CUDA unknown error - this may be due to an incorrectly set up environment", " has a total capacity of ",
        "Including non-PyTorch memory, this process", "reserved by PyTorch but unallocated",
    ],
    "lib/libtorch_cuda.so": ["Watchdog caught collective operation timeout", "ncclSystemError"],
}  # fmt: skip
"""A file of torch's, and the constant parts of what it says that the page quotes."""


@cache
def said(path: Path) -> bytes:
    """All constant text of a module, without its backquotes; of a library its bytes."""
    if path.suffix == ".so":
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    parts = [node.value if isinstance(node, ast.Constant) else getattr(node, "name", "") for node in tree]
    return "\n".join(part for part in parts if isinstance(part, str)).replace("`", "").encode()


@pytest.mark.slow
@pytest.mark.parametrize("file", QUOTED)
def test_what_torch_says_is_quoted_as_the_installed_one_says_it(file):
    for text in QUOTED[file]:
        assert text.strip().replace("`", "") in WORDS
    path = TORCH / file
    if not path.exists() and ("cuda" in path.name or "triton" in file):
        pytest.skip("a build of torch without CUDA")
    assert [text for text in QUOTED[file] if said(path).find(text.encode()) < 0] == []


MISMATCH = Unreadable("NVML: Driver/library version mismatch", "version_mismatch")
MODULE = {
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release\n"
}
OLD = ["sm_70", "sm_80", "sm_86"]
FINDINGS = {
    "driver_mismatch": {"nvml": MISMATCH, "files": MODULE},
    "nvml_missing": {"nvml": Unreadable("NVML: Unknown Error", "unknown_error")},
    "tf32_override": {"environ": {"NVIDIA_TF32_OVERRIDE": "0"}},
    "torch_architecture": {"torch": {"arch_list": OLD}},
}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_is_what_the_check_says(name):
    [one] = found(checks.load(name), **FINDINGS[name])
    assert f"{name} {one.message}" in WORDS
    if name != "torch_architecture":  # whose remedy the page gives in its own words
        assert f"{one.message} -> {one.remedy.partition('  #')[0]}" in WORDS


def test_every_check_that_is_named_is_one():
    named = re.findall(r"--only ([a-z_0-9,]+)", WORDS) + re.findall(r"\| ((?:`[a-z_0-9]+`(?:, )?)+) \|$", PAGE, re.M)
    names = {name for group in named for name in re.findall(r"[a-z_0-9]+", group)}
    assert names >= {"shm_size", "driver_cuda"}
    assert names <= set(checks.names())


BROKEN = {
    "is empty": "",
    "is not a profile: a mapping with the key 'schema' is expected": "- 1",
    "schema: the number 1 expected, the key is missing": "settings: {}",
    "schema 2 was made by a newer gputune; this one reads 1": "schema: 2",
    "settings.speed: there is no such setting": "schema: 1\nsettings: {speed: {value: 1}}",
    "settings.matmul_precision.value: 'tf32' or 'ieee' expected, \"fast\" given": (
        "schema: 1\nsettings: {matmul_precision: {value: fast, reason: x}}"
    ),
    "cannot be read: No such file or directory": None,
}


@pytest.mark.parametrize("says", [*BROKEN, "can be written by everybody", "can be replaced by everybody, in /data"])
def test_a_refused_profile_is_refused_in_these_words(tmp_path, says):
    assert f"`{says}`" in PAGE
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "profile.yaml"
    if (text := BROKEN.get(says, "schema: 1")) is not None:
        path.write_text(text)
    if "written" in says:
        path.chmod(0o666)
    if "replaced" in says:
        folder.chmod(0o777)
    with pytest.raises(ProfileError) as refused:
        load(path)
    assert refused.value.message == f"{path}: {says.replace('/data', str(folder))}"


def test_where_auto_finds_none(tmp_path):
    with pytest.raises(ProfileError) as refused:
        located(Fingerprint(cpu="AMD EPYC", torch="2.14.1+cu130"), {"XDG_CACHE_HOME": str(tmp_path)})
    assert refused.value.message in WORDS


def test_where_the_machine_was_busy():
    busy = TuneResult(program=program(), profile=None, combination=None, gain=None, disturbed="...")
    assert untold(busy, ["python"])[0] in WORDS


VERBS = ("gputune apply", "gputune tune", "gputune show", "gputune status", "gputune check", "gputune probe")
"""Spoken of, not to be typed."""


@pytest.mark.slow
def test_the_commands_are_gputune_s_own():
    words = PAGE.replace("\n", " ")
    inline = [line for line in re.findall(r"`(gputune [a-z][^`]*)`", words) if line not in VERBS]
    for line in inline + re.findall(r"^\$ (gputune .*)$", PAGE, re.MULTILINE):
        parsed(line)
    assert len(inline) > 20


@pytest.mark.parametrize(
    ("reason", "arguments"),
    [
        (Reason.ELSEWHERE, ("...",)), (Reason.BEYOND_NUMERICS, ("tf32", "mixed")),
        (Reason.NO_MODEL, ()), (Reason.NO_STEP, ()),
    ],
)  # fmt: skip
def test_a_reason_is_given_in_these_words(reason, arguments):
    assert str(reason(*arguments)) in WORDS


@pytest.mark.parametrize(
    "sentence",
    [
        "needs a line in the script: ...",
        "the program uses autocast or half precision itself",
        "the program gave fused=True",
    ],
)
def test_a_sentence_is_given_in_these_words(sentence):
    assert sentence in WORDS

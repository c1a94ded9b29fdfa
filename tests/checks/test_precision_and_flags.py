"""What a GPU multiplies natively, and torch's flags and variables about precision and determinism."""

from recorded import EIGHT, RecordedHost, says, table

from gputune.checks import bf16_emulated
from gputune.host import Unreadable

NVIDIA, TORCH = "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
T4 = {"Name": "Tesla T4", "CudaComputeCapability": [7, 5]}


def bf16(severity, capability, remedy="", name="NVIDIA H200", environ=None):
    facts = {"gpus.0.compute_capability": capability, "gpus.0.name": name}
    return says(severity, "", remedy, facts=facts, environ=environ)


test_bf16_emulated = table(
    "bf16_emulated",
    {f"{one}: float16": bf16("WARNING", one, ("float16", "GradScaler")) for one in ("7.0", "7.5")},
    {f"{one}: native": bf16("OK", one) for one in ("8.0", "8.6", "8.7", "9.0", "10.0", "12.0")},
    {
        f"{name} has no Tensor Cores": bf16("WARNING", "7.5", f"={bf16_emulated.USE_FLOAT32}", name)
        for name in ("NVIDIA GeForce GTX 1650", "NVIDIA GeForce GTX 1660 Ti", "NVIDIA T1000 8GB")
    },
    {
        "nothing is native": bf16("WARNING", "6.1", "float32"),
        "not read": bf16("UNKNOWN", None),
        "each GPU for itself": says("WARNING", of=1, machine=EIGHT, facts={"gpus.1.compute_capability": "7.5"}),
    },
    {
        f"Accelerate asks, {capability}": bf16(
            "WARNING", capability, f"=export ACCELERATE_MIXED_PRECISION={value}", "Tesla T4",
            {"ACCELERATE_MIXED_PRECISION": "bf16"},
        )
        for capability, value in [("7.5", "fp16"), ("6.1", "no")]
    },
)  # fmt: skip


def overrides(expected, environ, message="", remedy="", *, flags=(False, True), capability="9.0"):
    facts = {"gpus.*.compute_capability": capability}
    facts |= dict(zip(("precision.flags.matmul_tf32", "precision.flags.cudnn_tf32"), flags, strict=True))
    return says(expected, message, remedy, environ=environ, facts=facts)


test_tf32_override = table(
    "tf32_override",
    {"nothing set": overrides("OK", {})},
    {
        f"{value} {flags}": overrides("WARNING", {NVIDIA: value}, f"({against})", f"=unset {NVIDIA}", flags=flags)
        for value, flags, against in [
            ("0", (False, True), "cuDNN on"), ("0", (True, True), "matmul and cuDNN on"),
            ("1", (False, True), "matmul off"), ("1", (False, False), "matmul and cuDNN off"),
            ("1", (None, None), "not read"), ("1", (True, None), "not read"),
        ]
    },
    {
        "0, as the flags": overrides("OK", {NVIDIA: "0"}, flags=(False, False)),
        "1, as the flags": overrides("OK", {NVIDIA: "1"}, flags=(True, True)),
        "both": overrides([f"WARNING {NVIDIA}", f"OK {TORCH}"], {NVIDIA: "0", TORCH: "1"}),
        "no TF32": overrides("NOT_APPLICABLE", {NVIDIA: "0"}, capability="7.5"),
        "perhaps TF32": overrides("WARNING", {NVIDIA: "0"}, capability=None),
        "no GPU": says("NOT_APPLICABLE", machine="cpu-only", environ={NVIDIA: "0"}),
    },
    {f"{value!r} of unknown meaning": overrides("WARNING", {NVIDIA: value}) for value in ("", "true", "2")},
    {
        f"torch's {value!r}": overrides([f"{severity} {TORCH}"], {TORCH: value}, told)
        for value, severity, told in [
            ("1", "OK", "flag on"), ("0", "OK", "flag off"), ("TRUE", "WARNING", ""), ("", "WARNING", "")
        ]
    },
)  # fmt: skip


def asks(severity, message="", remedy="", *, gpu=T4, matmul=False, version="2.11.0", **environ):
    torch = {"torch": version, "flags": {**RecordedHost().torch["flags"], "matmul_tf32": matmul}}
    return says(severity, message, remedy, subject="GPU 0", gpu=gpu, torch=torch, environ=environ)


test_tf32_unsupported = table(
    "tf32_unsupported",
    {
        f"{capability}": asks(severity, gpu={"CudaComputeCapability": capability}, matmul=True, **{NVIDIA: "1"})
        for capability, severity in [([7, 0], "WARNING"), ([7, 5], "WARNING"), ([8, 0], "OK"), ([9, 0], "OK")]
    },
    {
        f"{' and '.join(names)}, flag {matmul}": asks(
            "WARNING", f"=Tesla T4 (7.5) has no TF32, which {' and '.join(names)} would turn on",
            f"=unset {' '.join(names)}", matmul=matmul, **dict.fromkeys(names, "1"),
        )
        for names in [(NVIDIA,), (TORCH,), (NVIDIA, TORCH)]
        for matmul in (True, False)
    },
    {
        f"nobody asks: {environ}": asks(
            "NOT_APPLICABLE", "=Tesla T4 (7.5) has no TF32, and nothing requests it", **environ
        )
        for environ in [{}, {NVIDIA: "0"}, {TORCH: "0"}, {NVIDIA: ""}]
    },
    {
        "a flag": asks(
            "WARNING", "=Tesla T4 (7.5) has no TF32, which torch's matmul flag requests",
            '=torch.set_float32_matmul_precision("highest")', matmul=True,
        ),
        "on by default before 1.12": asks("NOT_APPLICABLE", matmul=True, version="1.11.0"),
        "in 1.12 it is asked for": asks("WARNING", matmul=True, version="1.12.0"),
        "in an unknown version, too": asks("WARNING", matmul=True, version="custom"),
        "each GPU for itself": says("WARNING", of=3, gpu=T4, environ={NVIDIA: "1"}),
        "no torch": says("UNKNOWN", "no answer", subject="GPU 0", gpu=T4, torch=Unreadable("no answer")),
        "no flags": says(
            "UNKNOWN", "no answer", subject="GPU 0", gpu=T4,
            torch={"flags": None, "gaps": {"flags": "AttributeError: no answer"}},
        ),
        "nothing describes the GPU": says(
            "UNKNOWN", nvml=Unreadable("no NVML"), torch=Unreadable("no answer"), environ={NVIDIA: "1"}
        ),
        "no GPU": says("NOT_APPLICABLE", machine="cpu-only", environ={NVIDIA: "1"}),
    },
)  # fmt: skip


def libraries(expected, message="", remedy="", capability="9.0", path=None, **more):
    facts = {"gpus.*.compute_capability": capability} | {f"libraries.{name}": value for name, value in more.items()}
    return says(expected, message, remedy, facts=facts, environ={"LD_LIBRARY_PATH": path})


OLD = "/opt/old/lib/libcublas.so.10"
UPGRADE = (
    "/opt/torch/.venv/bin/python3 -m pip install --upgrade torch --index-url https://download.pytorch.org/whl/cu130"
)
test_tf32_libraries = table(
    "tf32_libraries",
    {
        "an old cuBLAS": libraries(["WARNING cuBLAS", "OK cuDNN"], "10.2.3", f"={UPGRADE}", cublas="10.2.3"),
        "an old cuDNN": libraries(["OK cuBLAS", "WARNING cuDNN"], "7.6.5", cudnn="7.6.5"),
        "the first with TF32": libraries(["OK cuBLAS", "OK cuDNN"], cublas="11.0.0", cudnn="8.0.0"),
        "an old library's folder is taken out": libraries(
            ["WARNING cuBLAS", "OK cuDNN"], "",
            f"=export LD_LIBRARY_PATH=/opt/mpi/lib  # or, if torch itself is that old: {UPGRADE}",
            path="/opt/old/lib:/opt/mpi/lib", cublas="10.2.3", loaded=(OLD,),
        ),
        "an unread cuBLAS": libraries(["UNKNOWN", "OK cuDNN"], "cuBLAS", cublas=None),
        "an unread cuDNN": libraries(["OK cuBLAS", "UNKNOWN"], "cuDNN", cudnn=None),
        "an unread capability": libraries(["WARNING cuBLAS", "OK cuDNN"], capability=None, cublas="10.2.3"),
        "no TF32": libraries("NOT_APPLICABLE", capability="7.5"),
        "no CUDA": libraries("NOT_APPLICABLE", cuda=None),
        "no torch": libraries("UNKNOWN", torch=None),
    },
)  # fmt: skip

VARIABLE = "CUBLAS_WORKSPACE_CONFIG"


def flags(severity, message="", remedy="", *, subject=None, workspace=None, asked="", cuda="13.0", gpu=None):
    """`asked`: which of a(lgorithms), c(udnn) and b(enchmark) are on."""
    names = {"a": "deterministic_algorithms", "c": "cudnn_deterministic", "b": "cudnn_benchmark"}
    torch = {"flags": {name: letter in asked for letter, name in names.items()}, "cuda": cuda}
    more = {"gpu": gpu} if gpu else {}
    return says(severity, message, remedy, subject=subject, torch=torch, environ={VARIABLE: workspace}, **more)


COSTS = ("costs speed", "torch.use_deterministic_algorithms(False)")
test_determinism = table(
    "determinism",
    {
        "not asked for": flags("OK"),
        "only timing": flags("OK", asked="b"),
        "cuDNN's": flags("WARNING", *COSTS, asked="c"),
        "without CUDA": flags("WARNING", *COSTS, asked="a", cuda=None),
        "without CUDA the variable is nobody's": flags("OK", workspace=":16:8", cuda=None),
        "a flag that was not read": says("UNKNOWN", torch={"flags": {"deterministic_algorithms": None}}),
    },
    {
        f"{asked} contradict each other": flags(
            "WARNING", "cudnn.benchmark", "=torch.backends.cudnn.benchmark = False", workspace=":4096:8", asked=asked
        )
        for asked in ("ab", "bc", "abc")
    },
    {
        f"cuBLAS needs more than {workspace!r}": flags(
            "WARNING", f"{VARIABLE} is {workspace or 'not set'}: cuBLAS fails or warns", f"=export {VARIABLE}=:4096:8",
            subject=VARIABLE, workspace=workspace, asked="a",
        )
        for workspace in (None, "", ":4096:2")
    },
    {f"with {one}": flags("WARNING", *COSTS, workspace=one, asked="a") for one in (":4096:8", ":16:8")},
    {
        f"{workspace} is small": flags(
            "WARNING", f"^{VARIABLE}={workspace} gives cuBLAS {kib} KiB of workspace; torch's default is 32768 KiB",
            f"^export {VARIABLE}=:4096:8  # or unset it", subject=VARIABLE, workspace=workspace,
        )
        for workspace, kib in {":16:8": 128, ":4096:1": 4096, ":4095:2": 8190, ":0:0": 0, ":16:8:4096:1": 4224}.items()
    },
    {
        f"{workspace} on {capability}": flags(
            severity, f"{VARIABLE}={workspace}", subject=..., workspace=workspace,
            gpu={"CudaComputeCapability": capability},
        )
        for workspace, capability, severity in [
            (":4096:2:16:8", [8, 0], "OK"), (":4096:2", [8, 0], "WARNING"), (":4096:2:16:8", [9, 0], "WARNING"),
            (":4096:8", [9, 0], "OK"), (":4096:8", [12, 0], "OK"),
        ]
    },
    {f"torch ignores {one!r}": flags("OK", workspace=one) for one in ("", "large", ":4096", ":4096:8:")},
)  # fmt: skip


def anomaly(severity, flag, message="", remedy=""):
    return says(severity, message, remedy, facts={"precision.flags.anomaly_detection": flag})


test_anomaly_detection = table(
    "anomaly_detection",
    {
        "on": anomaly("WARNING", True, "anomalies", "=torch.autograd.set_detect_anomaly(False)"),
        "off": anomaly("OK", False),
        "not told": anomaly("UNKNOWN", None),
    },
)

MIX = "PyTorch is checking whether allow_tf32 is enabled, a mix of the legacy and new APIs"
BOTH = ("^torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True", "gputune.apply")
test_precision_api = table(
    "precision_api",
    {
        "getters that raise": says(
            "WARNING", f"=torch's older and newer switches disagree: {MIX}", BOTH, torch={"api_conflict": MIX}
        )
    },
)

CACHING = "PYTORCH_NO_CUDA_MEMORY_CACHING"


def caching(severity, value, torch, message="", remedy="", *, subject=...):
    return says(severity, message, remedy, subject=subject, environ={CACHING: value}, torch={"torch": torch})


CACHED = "=torch keeps freed GPU memory for the next tensor"
test_memory_caching = table(
    "memory_caching",
    {
        f"1 in {torch}": caching("WARNING", "1", torch, f"{CACHING}=1:", f"=unset {CACHING}", subject=CACHING)
        for torch in ("2.4.1", "2.11.0", "custom", None)
    },
    {
        f"{value!r} in {torch}": caching(severity, value, torch, f"{CACHING}={value}")
        for value in ("0", "", "true")
        for torch, severity in [("2.7.1", "WARNING"), ("2.8.0", "OK"), ("2.11.0+cu130", "OK")]
    },
    {f"not set in {torch}": caching("OK", None, torch, CACHED) for torch in ("2.4.1", "2.11.0")},
    {
        "another value without torch's version": caching("UNKNOWN", "0", None),
        "another variable": says("OK", environ={"PYTORCH_CUDA_ALLOC_CONF": "x:1"}),
    },
)

"""Variables left over from debugging, and libraries that variables put before torch's or the driver's own."""

from recorded import EIGHT, UNSUPPORTED, RecordedHost, says, table

from gputune.host import Unreadable

BLOCKING = "CUDA_LAUNCH_BLOCKING"
test_launch_blocking = table(
    "launch_blocking",
    {
        f"{value!r} is on": says(
            "WARNING", f"{BLOCKING}={value}:", f"=unset {BLOCKING}", subject=BLOCKING, environ={BLOCKING: value}
        )
        for value in ("1", "2", "true", "on")
    },
    {
        f"{value!r} is off": says("OK", environ={BLOCKING: value})
        for value in (None, "", " ", "0", " 0 ", "false", "OFF", "no")
    },
    {
        f"{name} is another variable": says("OK", environ={name: "1"})
        for name in ("CUDA_LAUNCH_BLOCK", "LAUNCH_BLOCKING")
    },
)

DSA = ("PYTORCH_USE_CUDA_DSA", "TORCH_USE_CUDA_DSA")
test_device_assertions = table(
    "device_assertions",
    {
        f"{' and '.join(names)}": says(
            "WARNING", f"=left over from debugging: {', '.join(f'{name}=1' for name in names)}",
            f"=unset {' '.join(names)}", subject=names[0], environ=dict.fromkeys(names, "1"),
        )
        for names in [DSA[:1], DSA[1:], DSA]
    },
    {f"{name}={value}": says("OK", environ={name: value}) for name in DSA for value in (None, "", "0")},
    {"only what is on": says("WARNING", "", f"=unset {DSA[1]}", subject=DSA[1], environ={DSA[0]: "0", DSA[1]: "1"})},
)  # fmt: skip

LOUD = {
    "CUBLAS_LOGINFO_DBG": ["1"], "CUBLASLT_LOG_LEVEL": ["2"], "CUBLASLT_LOG_MASK": ["2"], "CUDNN_LOGINFO_DBG": ["1"],
    "CUDNN_LOGLEVEL_DBG": ["3"], "CUDNN_FRONTEND_LOG_INFO": ["1"], "NCCL_DEBUG": ["INFO", "info", "ABORT", "TRACE"],
    "TORCH_DISTRIBUTED_DEBUG": ["INFO", "Detail"],
}  # fmt: skip
QUIET = {
    "CUBLAS_LOGINFO_DBG": ["0"], "CUBLASLT_LOG_LEVEL": ["0", "1"], "CUBLASLT_LOG_MASK": ["0", "1"],
    "CUDNN_LOGINFO_DBG": ["0"], "CUDNN_LOGLEVEL_DBG": ["", "0", "1", "2"], "CUDNN_FRONTEND_LOG_INFO": ["0"],
    "NCCL_DEBUG": ["", "warn", "VERSION", "WARN"], "TORCH_DISTRIBUTED_DEBUG": ["OFF", "off"],
}  # fmt: skip
test_library_logging = table(
    "library_logging",
    {
        f"{name}={value}": says("WARNING", f"{name}={value}", f"=unset {name}", subject=name, environ={name: value})
        for name, values in LOUD.items()
        for value in values
    },
    {f"{name}={value}": says("OK", environ={name: value}) for name, values in QUIET.items() for value in values},
    {
        "each for itself": says(
            ["WARNING CUBLASLT_LOG_LEVEL", "WARNING NCCL_DEBUG"],
            environ={"NCCL_DEBUG": "INFO", "CUBLASLT_LOG_LEVEL": "5", "CUDNN_LOGINFO_DBG": "0"},
        )
    },
)

TOOL, PRELOADED = "/opt/nsight/libToolsInjection64.so", "/opt/nsight/libToolsInjectionProxy64.so"
NAMES = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"]
test_injection = table(
    "injection",
    {
        name: says(
            "WARNING", f"{name}={value}", (f"^unset {name}  # ", f"docker run --env {name}= IMAGE"), subject=name,
            environ={name: value},
        )
        for name, value in {
            "CUDA_INJECTION64_PATH": TOOL, "CUDA_INJECTION32_PATH": TOOL.replace("64", "32"),
            "NVTX_INJECTION64_PATH": TOOL, "NV_SANITIZER_INJECTION_PORT_BASE": "49152",
            "NSYS_PROFILING_SESSION_ID": "4711",
        }.items()
    },
    {
        f"preloaded: {value}": says(
            "WARNING", f"LD_PRELOAD={value}", f"{remedy}  # ", subject="LD_PRELOAD", environ={"LD_PRELOAD": value}
        )
        for value, remedy in {
            PRELOADED: "unset LD_PRELOAD", "/opt/sanitizer/libsanitizer-collection.so": "unset LD_PRELOAD",
            "/usr/lib/libjemalloc.so:/opt/cuda/libCUPTI.so": "export LD_PRELOAD=/usr/lib/libjemalloc.so",
        }.items()
    },
    {
        f"{name}={value}": says("OK", environ={name: value})
        for name, value in [
            ("CUDA_INJECTION64_PATH", ""), ("MY_CUDA_INJECTION64_PATH", TOOL), ("CUDA_INJECTION64_PATHS", TOOL),
            ("LD_AUDIT", "/opt/audit.so"), ("LD_PRELOAD", ""), ("NSIGHT_SYSTEMS_VERSION", "2025.5"),
            ("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"),
            ("LD_LIBRARY_PATH", "/usr/local/cuda/extras/CUPTI/lib64"),
        ]
    },
    {
        f"two, and {preload}": says(
            [f"WARNING {name}" for name in (*NAMES, *preload)], environ={**dict.fromkeys(NAMES, "/a.so"), **preload}
        )
        for preload in ({}, {"LD_PRELOAD": PRELOADED})
    },
)  # fmt: skip

INFINIBAND, P2P, IB = {"/dev/infiniband/uverbs0": ""}, "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"


def desktop(links):
    answers = RecordedHost(EIGHT).nvml_answers
    return {**answers, "devices": [{**device, "Brand": 15, **links} for device in answers["devices"]]}


def nccl(expected, environ, message="", remedy="", machine=EIGHT, **more):
    return says(expected, message, remedy, machine=machine, environ=environ, **more)


test_nccl_variables = table(
    "nccl_variables",
    {
        f"{name}={value}": nccl(
            [f"WARNING {name}"], {name: value}, f"{name}={value} ", f"^unset {name}  # ", files=INFINIBAND
        )
        for name, value in [
            (P2P, "1"), (P2P, " 01"), (P2P, "0x1"), ("NCCL_P2P_LEVEL", "LOC"), ("NCCL_P2P_LEVEL", "0"),
            ("NCCL_SHM_DISABLE", "1"), (IB, "1"), ("NCCL_NET", "Socket"),
        ]
    },
    {
        f"{name}={value}": nccl(["OK"], {name: value}, files=INFINIBAND)
        for name, value in [
            (P2P, "0"), (P2P, ""), (P2P, "true"), ("NCCL_SHM_DISABLE", "00"), (IB, "0x0"), ("NCCL_NET", "IB"),
            ("NCCL_P2P_LEVEL", "NVL"), ("NCCL_NVLS_ENABLE", "0"), ("NCCL_DEBUG", "INFO"),
        ]
    },
    {
        f"one GPU: {name}": nccl([f"NOT_APPLICABLE {name}"], {name: "1"}, machine="nvidia-h200-x1")
        for name in (P2P, "NCCL_SHM_DISABLE")
    },
    {
        "each is named": nccl(
            [f"WARNING {name}" for name in (P2P, "NCCL_SHM_DISABLE", IB)],
            dict.fromkeys([P2P, "NCCL_SHM_DISABLE", IB], "1"), files=INFINIBAND,
        ),
        "InfiniBand of one GPU": nccl([f"WARNING {IB}"], {IB: "1"}, machine="nvidia-h200-x1", files=INFINIBAND),
        "no InfiniBand": nccl([f"NOT_APPLICABLE {IB}"], {IB: "1"}),
        "EFA": nccl([f"NOT_APPLICABLE {IB}"], {IB: "1", "FI_PROVIDER": "efa"}, files=INFINIBAND),
        "desktop GPUs": nccl(
            [f"NOT_APPLICABLE {P2P}"], {P2P: "1"}, nvml=desktop({"NvLinkState:0": UNSUPPORTED})
        ),
        "linked desktop GPUs": nccl([f"WARNING {P2P}"], {P2P: "1"}, nvml=desktop({"NvLinkState:0": 1})),
        "nobody describes the GPUs": nccl(["UNKNOWN"], {P2P: "1"}, nvml=Unreadable("no NVML"), torch={"devices": []}),
        "no GPU": nccl(["NOT_APPLICABLE"], {P2P: "1"}, machine="cpu-only"),
    },
)  # fmt: skip

PATH, OWN, OTHER = "LD_LIBRARY_PATH", RecordedHost().torch["loaded"], "/opt/cuda/lib64"
FOLDER = next(path.rpartition("/")[0] for path in OWN if "libcudnn" in path)
CUDNN = "libcudnn.so.9"


def copies(expected, *names, message="", remedy="", loaded=OWN, bundled=OWN, path=OTHER):
    files, torch = {f"{OTHER}/{name}": "" for name in names}, {"loaded": list(loaded), "bundled": list(bundled)}
    return says(expected, message, remedy, files=files, environ={PATH: path}, torch=torch)


JEMALLOC = "/usr/lib/libjemalloc.so.2"
UNSET = f"^unset {PATH}  # "
test_library_copies = table(
    "library_copies",
    {
        "torch's own alone": copies(["OK"], message=f"=one copy each of libcublas.so.13, libcublasLt.so.13, {CUDNN}"),
        "each library": copies(["WARNING libcublas.so.13", f"WARNING {CUDNN}"], "libcublas.so.13", CUDNN),
        "a folder that is not searched": copies(["OK"], CUDNN, path="/elsewhere"),
        "one copy under two names": copies(["OK"], loaded=[*OWN, f"{FOLDER}/{CUDNN}.19.0"]),
        "none was seen": copies(["UNKNOWN"], loaded=[]),
        "every folder at once": says(
            ["WARNING libcublas.so.13", f"WARNING {CUDNN}"], "",
            "^export LD_LIBRARY_PATH=/opt/mpi/lib && export LD_PRELOAD=/usr/lib/libjemalloc.so.2  # ",
            files={f"{OTHER}/{CUDNN}": "", "/opt/more/libcublas.so.13": ""},
            environ={PATH: f"/opt/mpi/lib:{OTHER}:/opt/more", "LD_PRELOAD": f"{JEMALLOC} {OTHER}/{CUDNN}"},
            torch={"loaded": OWN, "bundled": OWN},
        ),
    },
    {
        f"offered by {path}": copies(
            [f"WARNING {CUDNN}"], CUDNN, message=f"=LD_LIBRARY_PATH has a {CUDNN} other than torch's, in {OTHER}",
            remedy=f"^export {PATH}=/nowhere  # " if "/nowhere" in path else UNSET, path=path,
        )
        for path in (OTHER, f"{OTHER}/", f"/nowhere:{OTHER}", f":{OTHER}:")
    },
    {
        f"not loaded by that name: {name}": copies(["OK"], name)
        for name in ("libcudnn.so.8", "libcudnn.so", f"{CUDNN}.1.0", "libcudart.so.13", "libcudnn_ops.so.9")
    },
    {
        f"another copy was loaded: {file}": copies(
            [f"WARNING {CUDNN}"], file, message=f"=torch loaded {CUDNN} from {OTHER}, not its own from {FOLDER}",
            remedy=UNSET, loaded=[f"{OTHER}/{file}"],
        )
        for file in (CUDNN, f"{CUDNN}.1.0")
    },
    {
        f"no copy of its own: {len(bundled)}": copies(["OK"], CUDNN, loaded=[f"{OTHER}/{CUDNN}"], bundled=bundled)
        for bundled in ([], [path for path in OWN if path.rpartition("/")[0] != FOLDER])
    },
    {
        f"two copies beside {len(bundled)}": copies(
            [f"WARNING {CUDNN}"], message=f"=torch loaded {CUDNN} twice: from {FOLDER} and /usr/lib",
            remedy="^LD_DEBUG=libs /opt/torch/.venv/bin/python3 -c 'import torch' 2>&1 | grep ",
            loaded=[*OWN, f"/usr/lib/{CUDNN}.1.0"], bundled=bundled,
        )
        for bundled in (OWN, [])
    },
)  # fmt: skip

STUBS, COMPAT, DRIVER = "/usr/local/cuda/lib64/stubs", "/usr/local/cuda/compat", "/usr/lib/driver"
FILES = dict.fromkeys(
    (f"{STUBS}/libcuda.so", f"{COMPAT}/libcuda.so.1", f"{DRIVER}/libcuda.so.1", f"{DRIVER}/libcuda.so.580.159.04",
     "/opt/other/libz.so"), "",
)  # fmt: skip
FAILED = {"devices": None, "gaps": {"devices": "RuntimeError: Error 803: unsupported combination"}}
WAITS = {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}
GEFORCE = {"Name": "NVIDIA GeForce RTX 4090", "Brand": 15}


def path(severity, *folders, message="", remedy="", release="600.10.01", torch=None, environ=None, **more):
    files = FILES | ({f"{COMPAT}/libcuda.so.{release}": ""} if release else {})
    environ = {PATH: ":".join(folders), **(environ or {})}
    return says(severity, message, remedy, environ=environ, files=files, torch=torch, **more)


test_library_path = table(
    "library_path",
    {
        f"a stub, {why}": path(severity, STUBS, message=STUBS, remedy=UNSET, torch=torch, subject=PATH)
        for why, torch, severity in [
            ("torch sees a GPU", None, "WARNING"), ("torch fails", FAILED, "ERROR"),
            ("no GPU", {"devices": []}, "ERROR"), ("no torch", Unreadable("not installed"), "WARNING"),
            ("no CUDA", {"cuda": None, "devices": None}, "WARNING"),
        ]
    },
    {
        f"a package no newer than the driver: {release}": path(
            "WARNING", COMPAT, message="not newer than the driver", release=release
        )
        for release in ("580.95.05", "580.65.06", "535.104.05")
    },
    {
        f"and torch fails: {release}": path(
            "ERROR", COMPAT, message="not newer than the driver", release=release, torch=FAILED
        )
        for release in ("580.95.05", "580.65.06", "535.104.05")
    },
    {
        "other folders stay": path(
            "WARNING", "/opt/other", f"{STUBS}/", "/opt/a b", remedy=f"^export {PATH}='/opt/other:/opt/a b'  # "
        ),
        "on a consumer GPU": path("WARNING", COMPAT, message="consumer", gpu=GEFORCE),
        "on a consumer GPU torch fails": path("ERROR", COMPAT, message="consumer", gpu=GEFORCE, torch=FAILED),
        "a package that works": path("OK", COMPAT),
        "one of an unknown release": path("OK", COMPAT, release=None),
        "one with which torch fails": path("ERROR", COMPAT, torch=FAILED),
        "Fabric Manager is another reason": path("OK", COMPAT, torch=WAITS),
        "and so are hidden GPUs": path("WARNING", STUBS, torch={"devices": []}, environ={"CUDA_VISIBLE_DEVICES": ""}),
        "no GPU at all": path("NOT_APPLICABLE", STUBS, machine="cpu-only"),
    },
    {
        f"never loaded: {folders}": path("OK", *folders, torch=FAILED)
        for folders in [(), ("/opt/other",), ("/nonexistent/stubs",), (DRIVER,), (DRIVER, STUBS, COMPAT)]
    },
    {
        f"another name: {folder}": says("OK", environ={PATH: folder}, files={f"{folder}/libcuda.so.1": ""})
        for folder in ("/usr/local/cuda/compatible", "/opt/stubs.d")
    },
)  # fmt: skip

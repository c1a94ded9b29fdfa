"""A script that describes, in JSON, the torch of the interpreter that runs it, which need not have gputune.

Standard library only. `python _torch_answers.py FD` writes a JSON object to file descriptor FD, and on a CUDA build of
torch a second one with the devices, for which the driver is asked: the first one's "next" names them. What cannot be
read is listed under "gaps", by name, with the exception's type, message and `name` (the module that an import did not
find).
"""

import ctypes
import getpass
import json
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import textwrap
from glob import glob
from importlib.util import find_spec
from typing import Any, Callable, Dict, List, Optional


def main(descriptor: int) -> None:
    # Python put this file's folder first on the path, where cpu.py, memory.py and others would shadow a user's modules.
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    gaps: Dict[str, Dict[str, Any]] = {}
    answers: Dict[str, Any] = {"python": sys.version.split()[0], "executable": sys.executable, "gaps": gaps}

    def ask(name: str, reader: Callable[[], Any]) -> None:
        try:
            answers[name] = reader()
        except Exception as error:
            gaps[name] = described(error)

    try:
        import torch
    except Exception as error:
        gaps["torch"] = described(error)
    else:
        ask("torch", lambda: str(torch.__version__))
        ask("cuda", lambda: torch.version.cuda)
        ask("hip", lambda: getattr(torch.version, "hip", None))
        ask("folder", lambda: os.path.dirname(os.path.realpath(torch.__file__)))
        ask("arch_list", lambda: torch._C._cuda_getArchFlags().split() if answers.get("cuda") else [])
        ask("flags", lambda: flags(torch))
        ask("threads", lambda: torch.get_num_threads())  # noqa: PLW0108 - a half torch may lack it
        ask("api_conflict", lambda: api_conflict(torch))
        ask("compile", lambda: compile_needs(torch))
        if answers.get("cuda"):
            ask("cudnn", lambda: torch.backends.cudnn.version())  # noqa: PLW0108 - a half torch may lack it
            ask("nccl", lambda: ".".join(str(part) for part in torch.cuda.nccl.version()))
            ask("cublas", lambda: loaded_version("libcublas", "cublasGetProperty"))
            ask("cublaslt", lambda: loaded_version("libcublasLt", "cublasLtGetProperty"))
            ask("bundled", lambda: bundled(answers["folder"]))
            ask("loaded", lambda: loaded("libcublas") + loaded("libcublasLt") + loaded("libcudnn"))
    ask("pynvml", lambda: version("pynvml"))
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        if answers.get("cuda"):
            pipe.write(json.dumps({**answers, "next": "devices"}) + "\n")
            pipe.flush()
            ask("devices", lambda: [device(torch, index) for index in range(torch.cuda.device_count())])
        json.dump(answers, pipe)


def described(error: Exception) -> Dict[str, Any]:
    return {"type": type(error).__name__, "name": getattr(error, "name", None), "message": first_line(error)}


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:300]


def flags(torch: Any) -> Dict[str, Any]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    # On torch 2.8 and older an assignment creates the attribute on the backends, so hasattr on them proves nothing.
    new_api = hasattr(torch._C, "_get_fp32_precision_getter")
    return {
        "matmul_tf32": matmul.fp32_precision == "tf32" if new_api else matmul.allow_tf32,
        "cudnn_tf32": cudnn.conv.fp32_precision == "tf32" if new_api else cudnn.allow_tf32,
        "cudnn_enabled": cudnn.enabled,
        "cudnn_benchmark": cudnn.benchmark,
        "cudnn_deterministic": cudnn.deterministic,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly_detection": torch.is_anomaly_enabled(),
    }


def api_conflict(torch: Any) -> Optional[str]:
    """The error that torch's older getters raise after only the newer API was used; None if they raise none."""
    try:
        _ = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    except RuntimeError as error:
        return textwrap.shorten(first_line(error).split(". ")[0], 160, placeholder=" ...")
    return None


def compile_needs(torch: Any) -> Dict[str, Any]:
    include = sysconfig.get_paths()["include"]
    return {
        "compiler": compiler("CC", "gcc", "clang"),
        "compiler_cxx": compiler("CXX", "g++"),
        "headers": os.path.exists(os.path.join(include, "Python.h")),
        "include": include,
        "triton": version("triton") or ("installed" if find_spec("triton") else None),
        "cache": cache_folder(torch),
    }


def compiler(variable: str, *commands: str) -> Optional[str]:
    named = os.environ.get(variable)
    return next(filter(None, map(shutil.which, [named] if named else commands)), None)


def cache_folder(torch: Any) -> Optional[str]:
    """The folder in which torch.compile would keep compiled code; None if torch cannot choose one."""
    named = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if named:
        return named
    try:
        return os.path.join(tempfile.gettempdir(), "torchinductor_" + user(torch))
    except Exception:  # no folder for temporary files, or a user id without a name
        return None


def user(torch: Any) -> str:
    """The user's name as torch.compile forms it; before 2.13 it raises for a user id without a name."""
    try:
        return getpass.getuser()
    except Exception:
        release = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
        if not release or (int(release.group(1)), int(release.group(2))) < (2, 13):
            raise
        return "uid_%d" % os.getuid()


def version(package: str) -> Optional[str]:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def device(torch: Any, index: int) -> Dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    return {
        "name": properties.name,
        "uuid": str(getattr(properties, "uuid", "")) or None,
        "major": properties.major,
        "minor": properties.minor,
        "total_memory": properties.total_memory,
        "multi_processor_count": properties.multi_processor_count,
    }


def loaded(library: str) -> List[str]:
    """The paths of the files of a library that this process has loaded, which may have spaces in them."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return sorted(set(re.findall(rf"^(?:\S+ +){{5}}(/.*/{library}\.so\S*)", maps.read(), re.MULTILINE)))


def bundled(folder: str) -> List[str]:
    """The paths of cuBLAS and cuDNN in the packages that torch's wheel depends on, which are installed beside it."""
    found = glob(os.path.join(os.path.dirname(folder), "nvidia", "*", "lib", "lib*.so.*"))
    return sorted(path for path in found if re.search(r"/lib(cublas|cublasLt|cudnn)\.so\.\d+$", path))


def loaded_version(library: str, function: str) -> str:
    """The version of the copy that this process has loaded; loading it by name could find another copy."""
    paths = loaded(library)
    if not paths:
        raise LookupError(f"{library} is not loaded by import torch")
    get = getattr(ctypes.CDLL(paths[0]), function)
    parts = []
    for index in range(3):
        value = ctypes.c_int()
        if get(index, ctypes.byref(value)):
            raise LookupError(f"{function} did not answer")
        parts.append(str(value.value))
    return ".".join(parts)


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Runs in the interpreter that is asked about, which need not have gputune: what its torch says, as JSON.

Standard library only. `python _torch_answers.py FD` writes one JSON object to descriptor FD. Whatever cannot be read is
named under "gaps" with the reason.
"""

import ctypes
import json
import os
import re
import sys
from typing import Any, Callable, Dict


def main(descriptor: int) -> None:
    # Python put this file's folder first on the path, where cpu.py, memory.py and others would shadow a user's modules.
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    gaps: Dict[str, str] = {}
    answers: Dict[str, Any] = {"python": sys.version.split()[0], "executable": sys.executable, "gaps": gaps}

    def ask(name: str, reader: Callable[[], Any]) -> None:
        try:
            answers[name] = reader()
        except Exception as error:
            gaps[name] = f"{type(error).__name__}: {first_line(error)}"

    try:
        import torch
    except Exception as error:
        gaps["torch"] = f"import torch: {type(error).__name__}: {first_line(error)}"
    else:
        answers["torch"] = str(torch.__version__)
        answers["cuda"] = torch.version.cuda
        ask("arch_list", lambda: torch._C._cuda_getArchFlags().split() if torch.version.cuda else [])
        ask("flags", lambda: flags(torch))
        ask("threads", torch.get_num_threads)
        if torch.version.cuda:
            ask("cudnn", torch.backends.cudnn.version)
            ask("nccl", lambda: ".".join(str(part) for part in torch.cuda.nccl.version()))
            ask("cublas", lambda: loaded_version("libcublas", "cublasGetProperty"))
            ask("cublaslt", lambda: loaded_version("libcublasLt", "cublasLtGetProperty"))
            ask("devices", lambda: [device(torch, index) for index in range(torch.cuda.device_count())])
    with os.fdopen(descriptor, "w") as pipe:
        json.dump(answers, pipe)


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:300]


def flags(torch: Any) -> Dict[str, Any]:
    """The precision and cuDNN flags as they stand right after import."""
    matmul = torch.backends.cuda.matmul
    return {
        "matmul_tf32": matmul.fp32_precision == "tf32" if new_api(torch) else matmul.allow_tf32,
        "cudnn_tf32": torch.backends.cudnn.conv.fp32_precision == "tf32"
        if new_api(torch)
        else torch.backends.cudnn.allow_tf32,
        "cudnn_enabled": torch.backends.cudnn.enabled,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def new_api(torch: Any) -> bool:
    # hasattr on the backends themselves is fooled by an assignment on torch 2.8 and older.
    return hasattr(torch._C, "_get_fp32_precision_getter")


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


def loaded_version(library: str, function: str) -> str:
    """The version of the copy that this process really loaded; loading one by name might find another."""
    with open("/proc/self/maps") as maps:
        paths = sorted(set(re.findall(rf"(/\S*/{library}\.so\S*)", maps.read())))
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

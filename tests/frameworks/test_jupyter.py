"""A real kernel of Jupyter below `gputune apply`: what a cell finds."""

import json
import sys
from pathlib import Path

import pytest
from making import environ, gputune, profile, written

from gputune.profile import Fingerprint

pytestmark = pytest.mark.frameworks

VALUES = {"cudnn_benchmark": True, "matmul_precision": "tf32", "omp_threads": 1}

CELL = """
import json, os, torch
print(json.dumps([
    torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark, torch.get_num_threads(), os.getppid(),
]))
"""

CLIENT = f"""
import json, os
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(startup_timeout=100)
said = []
try:
    client.execute_interactive({CELL!r}, timeout=100, output_hook=lambda message: said.append(message["content"]))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
texts = [content.get("text", "") for content in said]
print(json.dumps([os.getpid(), *json.loads("".join(texts))]) if any(texts) else said)
"""


def test_the_flags_and_the_threads_read_back_in_a_cell(tmp_path: Path, here: Fingerprint) -> None:
    """Started by a client in its own process, as Jupyter's server starts one."""
    path = written(tmp_path, profile(VALUES, here))
    folders = {name: str(tmp_path / name) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    done = gputune("apply", path, "--", sys.executable, "-c", CLIENT, env=environ(**folders))
    client, level, benchmark, threads, parent = json.loads(done.stdout)
    assert (level, benchmark, threads) == ("high", True, 1)
    assert parent == client

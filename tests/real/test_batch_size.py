"""A search for a batch size within a real memory limit: the kernel kills the bench process, or the watch ends it
before, and the search has an answer either way.

`pytest -m real` runs them; they need root and cgroup v1 hierarchies that can be written to.
"""

import json
import sys

import pytest
from making import command

pytestmark = pytest.mark.real

LIMIT = 1 << 30
OF_STEPS = {
    "its own": "held = torch.ones(batch_size << 21)",
    "shared": "fd = os.memfd_create('batch'); os.posix_fallocate(fd, 0, batch_size << 23); os.close(fd)",
}
"""8 MiB for each of the batch, as the process's own memory and as shared memory, which counts in the cgroup only."""
TOO_MANY = "128"
"""The first trial ends it, however long a search takes on this machine."""
MAIN = "import sys; from gputune_start import main; sys.argv = ['gputune', *sys.argv[1:]]; main()"
BLIND = "from gputune.batch_size import running; running.PERIOD_SECONDS = 3600; "
UNTIMED = "from gputune.batch_size import _Search; _Search.time = lambda search: None; "
"""These tests are about what fits; timing it in turn would take as long again."""


@pytest.fixture
def a_gib(cgroup):
    return cgroup(memory_bytes=LIMIT)


def searched(group, body, tmp_path, code):
    path = tmp_path / "training.py"
    path.write_text(f"import os, torch\ndef make():\n    def step(batch_size):\n        {body}\n    return step\n")
    options = ["--device", "cpu", "--seconds", "12", "--start", TOO_MANY, "--most", TOO_MANY, "--json"]
    result = command([*group.words, sys.executable, "-c", code, "batch-size", f"{path}:make", *options])
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return json.loads(result.stdout)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", OF_STEPS)
def test_the_kernel_kills_the_process_and_the_search_goes_on(a_gib, tmp_path, kind):
    """The watch is made to look away."""
    answer = searched(a_gib, OF_STEPS[kind], tmp_path, BLIND + (UNTIMED if kind == "shared" else "") + MAIN)
    assert a_gib.oom_kills > 0
    whys = {trial["why"] for trial in answer["trials"] if trial["fate"] != "ran"}
    assert whys == {"killed by SIGKILL, as where memory runs out"}
    assert 16 <= answer["largest_run"] < int(TOO_MANY)


@pytest.mark.exhaustive
def test_the_watch_ends_it_before_the_kernel_must(a_gib, tmp_path):
    """The step takes memory slowly enough for the watch to see it."""
    body = "import time; held = [(torch.ones(1 << 21), time.sleep(0.004)) for _ in range(batch_size)]"
    answer = searched(a_gib, body, tmp_path, UNTIMED + MAIN)
    assert a_gib.oom_kills == 0
    whys = {trial["why"] for trial in answer["trials"] if trial["fate"] != "ran"}
    assert whys == {"ended before it took the last of the memory"}
    largest = next(trial for trial in answer["trials"] if trial["batch"] == answer["largest"])
    assert largest["total_bytes"] == LIMIT
    assert largest["left_bytes"] >= 0.1 * LIMIT

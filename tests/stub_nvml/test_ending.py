"""How gputune ends while NVML hangs: on Ctrl-C, on SIGTERM, several at once; and what is left then."""

import signal
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from making import until
from stub_nvml.node import START_UP_SECONDS, Node, left, without_torch

pytestmark = pytest.mark.slow

ENDING_SECONDS = 1.0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("fault", ["hang", "deaf", "spin"])
def test_a_signal_ends_it_at_once(fault: str, number: signal.Signals, code: int, tmp_path) -> None:
    """Also as a terminal sends it, to the whole group."""
    mark, log = uuid.uuid4().hex, tmp_path / "log"
    node = Node(f"log={log};nvmlDeviceGetTemperature@1={fault}", python=without_torch())
    process = node.start(mark, node.python, "-m", "gputune", "check", "--json", "--timeout", "60")
    until(lambda: log.exists() and "nvmlDeviceGetTemperature@1" in log.read_text(), 30)
    process.send_signal(number)
    sent = time.monotonic()
    stdout, stderr = process.communicate(timeout=30)
    assert time.monotonic() - sent < ENDING_SECONDS + 1
    assert (process.returncode, stdout) == (code, ""), stderr
    assert left(mark) == []


def test_killed_itself_it_leaves_nothing(tmp_path) -> None:
    """The out-of-memory killer gives no time to clean up."""
    mark, log = uuid.uuid4().hex, tmp_path / "log"
    node = Node(f"log={log};nvmlDeviceGetTemperature@1=hang", python=without_torch())
    process = node.start(mark, node.python, "-m", "gputune", "check", "--json", "--timeout", "3")
    until(lambda: log.exists() and "nvmlDeviceGetTemperature@1" in log.read_text(), 30)
    process.kill()
    process.communicate(timeout=30)
    assert left(mark, 10) == []


def test_eight_at_once() -> None:
    node = Node("nvmlDeviceGetName@1=hang", python=without_torch())
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: node.gputune("check", "--json", "--timeout", "1"), range(8)))
    assert [(ran.code, ran.left) for ran in runs] == [(1, [])] * 8
    assert max(ran.seconds for ran in runs) < 1 + 3 * START_UP_SECONDS

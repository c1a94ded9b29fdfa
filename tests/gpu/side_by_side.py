"""All GPUs of a node, measured at once: how long it takes beside one, whether healthy ones raise an alarm, and whether
one that others load is named. Needs at least three GPUs.

`python tests/gpu/side_by_side.py [FOLDER]`; into FOLDER go the rows of 20 healthy runs and of one run a loaded GPU,
which `tests/machines/nvidia-h200-x4/side_by_side.json` holds of a real machine. A table at the end.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from gputune import facts
from gputune.bench_process.process import RestartingProcess
from gputune.host import Host
from gputune.probing.plan import ProbeRequest, devices_of, plan
from gputune.probing.running import DeviceRun
from gputune.probing.together import at_once
from gputune.profile import load

LOAD = """
import sys, torch
a = torch.randn(4096, 4096, device=sys.argv[1], dtype=torch.bfloat16)
print("loaded", flush=True)
while True:
    for _ in range(200): a @ a
    torch.cuda.synchronize()
"""
SETS = 20


@contextmanager
def loaded(device):
    with subprocess.Popen([sys.executable, "-c", LOAD, device], stdout=subprocess.PIPE, text=True) as other:
        other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


def probed(folder, *words):
    path = Path(folder) / "profile.yaml"
    started = time.monotonic()
    command = [sys.executable, "-m", "gputune", "probe", "--budget", "quick", *words, "-o", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return load(path), time.monotonic() - started


def findings(profile):
    return [f"{one.subject}: {one.severity} {one.message}" for one in profile.findings if one.check == "slow_gpu"]


def recorded(sets):
    """The rows of each run. The bench processes live for all runs."""
    machine = facts.read(Host())
    devices, _ = devices_of(machine)
    request = ProbeRequest(device="all", budget="quick", only=["side_by_side"])
    jobs = plan(devices[0], request)
    kept = []
    with ExitStack() as stack:
        runs = [DeviceRun.on(where, stack.enter_context(RestartingProcess()), machine, Host()) for where in devices]
        with at_once(runs) as on_all:
            on_all(DeviceRun.ready)
            for load_of in sets:
                with loaded(load_of) if load_of else ExitStack():
                    on_all(lambda run: run.do(jobs, lambda progress: None))
                kept.append(
                    {
                        "loaded": load_of,
                        "rows": [asdict(row) for run in runs for row in run.measurements],
                    }
                )
                for run in runs:
                    run.measurements.clear()
    return kept


def main(folder):
    lines = []
    with tempfile.TemporaryDirectory() as place:
        _, alone = probed(place, "--device", "cuda:0")
        lines.append(f"one GPU, quick: {alone:.1f} s")
        for number in (1, 2, 3):
            profile, seconds = probed(place, "--device", "all")
            slow = [line for line in findings(profile) if "WARNING" in line]
            title = f"all {profile.fingerprint.gpu_count}, healthy, run {number}"
            lines.append(f"{title}: {seconds:.1f} s (+{seconds - alone:.1f}), {len(slow)} named")
            lines += [f"    {line}" for line in findings(profile)]
            lines += [f"    gap {gap.fact}: {gap.reason}" for gap in profile.gaps if gap.reason != "Not Supported"][:6]
        with loaded("cuda:2"):
            profile, seconds = probed(place, "--device", "all")
        lines.append(f"all, cuda:2 loaded by another process: {seconds:.1f} s")
        lines += [f"    {line}" for line in findings(profile)]
        if folder:
            (Path(folder) / "profile-all.yaml").write_text((Path(place) / "profile.yaml").read_text())
    devices = [f"cuda:{number}" for number in range(profile.fingerprint.gpu_count)]
    kept = recorded([None] * SETS + devices)
    if folder:
        Path(folder, "side_by_side.json").write_text(json.dumps(kept))
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else None)

"""`gputune apply auto`: which profile it takes, and how one process measures while the others wait.

Where processes are to probe, what measures is a stand-in: it writes its pid down, takes as long as it is told, and returns a profile.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from making import command, environ, gputune, profile, python

from gputune.host import Host
from gputune.profile import Fingerprint, load, places, save
from gputune.runtime import locate
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.cluster

SHOW = [sys.executable, "-c", "import os; print(os.environ.get('GPUTUNE_APPLY'))"]


@pytest.fixture(scope="module")
def here() -> Fingerprint:
    return local_fingerprint(Host(environ=environ()))


@pytest.fixture
def cache(tmp_path: Path) -> str:
    """The XDG_CACHE_HOME of an own and empty cache."""
    return str(tmp_path / "cache")


def keep(here: Fingerprint, cache: str, threads: int) -> Path:
    return places.keep(profile({"omp_threads": threads}, fingerprint=here), here, {"XDG_CACHE_HOME": cache})


class TestChoosing:
    def test_the_named_one_comes_before_the_cached_one(self, here: Fingerprint, cache: str, tmp_path: Path) -> None:
        keep(here, cache, threads=3)
        assert gputune("apply", "auto", "--", *SHOW, env=environ(XDG_CACHE_HOME=cache)).stdout == '{"omp_threads":3}\n'
        save(profile({"omp_threads": 5}, fingerprint=here), tmp_path / "own.yaml")
        env = environ(XDG_CACHE_HOME=cache, GPUTUNE_PROFILE=str(tmp_path / "own.yaml"))
        assert gputune("apply", "auto", "--", *SHOW, env=env).stdout == '{"omp_threads":5}\n'
        env["GPUTUNE_PROFILE"] = ""
        assert gputune("apply", "auto", "--", *SHOW, env=env).stdout == '{"omp_threads":3}\n'

    def test_the_shipped_one_comes_last(self, cache: str) -> None:
        h200 = Fingerprint(gpu="NVIDIA H200", torch="2.11.0+cu130")
        path = locate.locate(h200, {"XDG_CACHE_HOME": cache})
        assert path.name == "nvidia-h200.yaml"
        keep(h200, cache, threads=3)
        assert locate.locate(h200, {"XDG_CACHE_HOME": cache}).parent == Path(cache) / "gputune"

    def test_with_none_the_command_runs_and_it_is_said(self, cache: str) -> None:
        done = gputune("apply", "auto", "--", *SHOW, env=environ(XDG_CACHE_HOME=cache))
        assert (done.returncode, done.stdout) == (0, "None\n")
        assert done.stderr.startswith("gputune: there is no profile for this machine (")
        assert done.stderr.count("\n") == 1
        assert not Path(cache).exists()

    def test_with_none_strict_refuses_and_without_a_command_it_is_2(self, cache: str) -> None:
        env = environ(XDG_CACHE_HOME=cache)
        assert gputune("apply", "--strict", "auto", "--", *SHOW, env=env).returncode == 78
        assert gputune("apply", "auto", env=env).returncode == 2

    def test_a_named_one_that_is_not_there_is_not_replaced_by_another(self, here: Fingerprint, cache: str) -> None:
        keep(here, cache, threads=3)
        env = environ(XDG_CACHE_HOME=cache, GPUTUNE_PROFILE="/no/such.yaml")
        done = gputune("apply", "auto", "--", *SHOW, env=env)
        assert (done.returncode, done.stdout) == (0, "None\n")
        assert done.stderr.startswith("gputune: /no/such.yaml: cannot be read")

    def test_a_file_of_that_name_is_named_by_its_path(self, here: Fingerprint, cache: str, tmp_path: Path) -> None:
        save(profile({"omp_threads": 7}, fingerprint=here), tmp_path / "auto")
        done = gputune("apply", "./auto", "--", *SHOW, env=environ(XDG_CACHE_HOME=cache), cwd=tmp_path)
        assert done.stdout == '{"omp_threads":7}\n'

    def test_a_script_may_say_auto_too(self, here: Fingerprint, cache: str) -> None:
        keep(here, cache, threads=1)
        code = "import gputune; print([row.after for row in gputune.apply('auto').applied])"
        assert python("-c", code, env=environ(XDG_CACHE_HOME=cache)).stdout == "[1]\n"

    def test_a_word_that_is_no_time_to_probe_costs_no_command(self, cache: str) -> None:
        done = gputune("apply", "auto", "--", *SHOW, env=environ(XDG_CACHE_HOME=cache, GPUTUNE_PROBE="yes"))
        assert (done.returncode, done.stdout) == (0, "None\n")
        assert "GPUTUNE_PROBE=yes: says no time to probe; choose from never, missing, always" in done.stderr


PROBE = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from making import profile
from gputune import probing
from gputune.cli import main
from gputune.errors import MeasureError
from gputune.host import Host, node_lock
from gputune.runtime.local_fingerprint import local_fingerprint

def probe(request, **options):
    with open(os.environ["PROBES"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(float(os.environ["PROBE_SECONDS"]))
    if os.environ.get("PROBE_FAILS"):
        raise MeasureError("nothing could be measured", "see: gputune check")
    return profile({"omp_threads": os.getpid() % 4000 + 1}, fingerprint=local_fingerprint(Host()))

probing.probe = probe
if "NODE" in os.environ:
    node_lock.BOOT_ID = Path(os.environ["NODE"])
sys.argv[0] = "gputune"
main()
"""


@pytest.fixture
def env(cache: str, tmp_path: Path) -> dict[str, str]:
    """For a gputune whose probe is the stand-in."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    return environ(
        XDG_CACHE_HOME=cache,
        PROBES=str(tmp_path / "probes"),
        PROBE_SECONDS="0.5",
        GPUTUNE_PROBE="missing",
        PYTHONPATH=path,
    )


def test_a_probe_fills_the_cache(env: dict[str, str], cache: str, tmp_path: Path) -> None:
    assert python("-c", PROBE, "probe", "-o", "p.yaml", env=env, cwd=tmp_path).returncode == 0
    [kept] = (Path(cache) / "gputune").iterdir()
    assert kept.read_bytes() == (tmp_path / "p.yaml").read_bytes()
    del env["GPUTUNE_PROBE"]
    assert (
        gputune("apply", "auto", "--", *SHOW, env=env).stdout
        == f'{{"omp_threads":{load(kept).settings["omp_threads"].value}}}\n'
    )


def test_a_probe_of_some_benches_does_not(env: dict[str, str], cache: str, tmp_path: Path) -> None:
    """It would stand in the way of the whole."""
    assert python("-c", PROBE, "probe", "--only", "conv", "-o", "p.yaml", env=env, cwd=tmp_path).returncode == 0
    assert (tmp_path / "p.yaml").exists()
    assert not Path(cache).exists()


def test_nor_one_that_other_programs_should_not_get(env: dict[str, str], cache: str, tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("def make(): return range(10)")
    for words, variables, why in (
        (["--dataset", "data.py:make"], {}, "its DataLoader is one dataset's"),
        ([], {"NVIDIA_TF32_OVERRIDE": "0"}, "measured under NVIDIA_TF32_OVERRIDE"),
    ):
        done = python("-c", PROBE, "probe", "-o", "p.yaml", *words, env=env | variables, cwd=tmp_path)
        assert done.returncode == 0
        assert f"gputune: not kept for gputune apply auto: {why}; " in done.stderr
        assert not Path(cache).exists()


def test_a_quick_probe_does_not_replace_a_longer_one(env: dict[str, str], cache: str, tmp_path: Path) -> None:
    for budget in ("quick", "standard", "quick"):
        done = python("-c", PROBE, "probe", "--budget", budget, "-o", "p.yaml", env=env, cwd=tmp_path)
        [kept] = (Path(cache) / "gputune").glob("*.yaml")
        assert (kept.read_bytes() == (tmp_path / "p.yaml").read_bytes()) == ("not kept" not in done.stderr)
    assert "a longer probe may have written the one there" in done.stderr


def test_a_home_that_one_may_not_look_into_is_passed_by(
    here: Fingerprint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs as another user with root's HOME."""
    keep(here, str(tmp_path), threads=3)
    monkeypatch.setattr(places, "MACHINE", (tmp_path / "gputune",))
    assert places.cached(here, {"HOME": "/" + "x" * 5000}) == tmp_path / "gputune" / places.name_of(here)


def test_a_cache_that_cannot_be_written_is_said_and_the_profile_is_written(env: dict[str, str], tmp_path: Path) -> None:
    done = python("-c", PROBE, "probe", "-o", "p.yaml", env={**env, "XDG_CACHE_HOME": "/dev/null"}, cwd=tmp_path)
    assert (done.returncode, (tmp_path / "p.yaml").exists()) == (0, True)
    assert "gputune: not kept for gputune apply auto: /dev/null/gputune: " in done.stderr


class TestProbing:
    """Processes that start at once, as a scheduler starts them."""

    @pytest.fixture
    def start(self) -> Iterator[object]:
        started: list[subprocess.Popen[str]] = []

        def start(env: dict[str, str], count: int = 1) -> list[subprocess.Popen[str]]:
            words = [sys.executable, "-c", PROBE, "apply", "auto", "--", *SHOW]
            new = [
                subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in range(count)
            ]
            started.extend(new)
            return new

        yield start
        for process in started:
            process.kill()
            process.communicate()

    def answers(self, processes: list[subprocess.Popen[str]]) -> list[str]:
        outs = [process.communicate(timeout=60)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * len(processes)
        return outs

    def probes(self, env: dict[str, str]) -> list[int]:
        path = Path(env["PROBES"])
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def test_of_eight_at_once_one_probes_and_all_apply_the_same(self, env: dict[str, str], start) -> None:
        env["PROBE_SECONDS"] = "1.5"
        outs = self.answers(start(env, 8))
        [probed] = self.probes(env)
        assert {json.loads(out)["omp_threads"] for out in outs} == {probed % 4000 + 1}

    def test_of_torchruns_ranks_too(self, env: dict[str, str]) -> None:
        """torchrun exports OMP_NUM_THREADS=1, which is then the user's."""
        backends = ("cudnn", "efficient", "flash", "math")
        probe = PROBE.replace('"omp_threads": os.getpid() % 4000 + 1', f'"sdpa_backend": {backends}[os.getpid() % 4]')
        assert probe != PROBE
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=8", "--no-python"]
        done = command([*torchrun, sys.executable, "-c", probe, "apply", "auto", "--", *SHOW], env)
        assert done.returncode == 0, done.stderr
        applied = re.findall(r'"sdpa_backend":"(\w+)"', done.stdout)  # eight write to one pipe
        [probed] = self.probes(env)
        assert applied == [backends[probed % 4]] * 8

    def test_when_the_one_that_probes_is_killed_the_next_one_probes(self, env: dict[str, str], start) -> None:
        env["PROBE_SECONDS"] = "30"
        first = start(env)[0]
        while not self.probes(env):
            assert first.poll() is None
            time.sleep(0.05)
        env["PROBE_SECONDS"] = "0.5"
        others = start(env, 2)
        for other in others:
            assert other.stderr.readline().startswith("gputune: waiting for another process, which probes this machine")
        first.kill()
        outs = self.answers(others)
        assert len(self.probes(env)) == 2
        assert len(set(outs)) == 1

    def test_of_eight_the_seven_that_are_left_apply_the_same_when_the_one_that_probes_is_killed(
        self, env: dict[str, str], start
    ) -> None:
        env["PROBE_SECONDS"] = "2"
        eight = start(env, 8)
        while not self.probes(env):
            time.sleep(0.05)
        [first] = self.probes(env)
        [killed] = [process for process in eight if process.pid == first]
        killed.kill()
        outs = self.answers([process for process in eight if process is not killed])
        _, second = self.probes(env)
        assert {json.loads(out)["omp_threads"] for out in outs} == {second % 4000 + 1}

    def test_nodes_that_share_a_home_probe_once_each_and_all_apply_the_first_ones(
        self, env: dict[str, str], start, tmp_path: Path
    ) -> None:
        """So that the ranks of one job have the same; the second node needs longer."""
        ranks = []
        for node, seconds in (("a", "1"), ("b", "2")):
            (tmp_path / node).write_text(f"boot id of {node}\n")
            ranks += start({**env, "NODE": str(tmp_path / node), "PROBE_SECONDS": seconds}, 2)
        outs = self.answers(ranks)
        assert len(self.probes(env)) == 2
        assert len(set(outs)) == 1

    def test_a_probe_that_fails_is_not_repeated_by_those_that_waited(self, env: dict[str, str], start) -> None:
        env |= {"PROBE_SECONDS": "2", "PROBE_FAILS": "1"}
        first = start(env)
        while not self.probes(env):
            time.sleep(0.05)
        assert self.answers(first + start(env, 3)) == ["None\n"] * 4
        assert len(self.probes(env)) == 1

    def test_further_in_always_means_no_other_start(self, env: dict[str, str], start) -> None:
        env["GPUTUNE_PROBE"] = "always"
        [process] = start(env)
        self.answers([process])
        done = python(
            "-c",
            PROBE,
            "apply",
            "auto",
            "--",
            sys.executable,
            "-c",
            "import os; print(os.environ['GPUTUNE_PROBE'])",
            env=env,
        )
        assert done.stdout == "missing\n"

    def test_a_probe_that_fails_costs_no_command(self, env: dict[str, str], start) -> None:
        [process] = start({**env, "PROBE_FAILS": "1"})
        out, said = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "None\n")
        assert said.splitlines()[1] == "gputune: not probed: nothing could be measured; see: gputune check"

    def test_missing_means_once_and_always_means_at_each_start(self, env: dict[str, str], start) -> None:
        for expected in (1, 1):
            self.answers(start(env))
            assert len(self.probes(env)) == expected
        env["GPUTUNE_PROBE"] = "always"
        for expected in (2, 3):
            self.answers(start(env))
            assert len(self.probes(env)) == expected

    def test_never_and_by_itself_it_does_not_probe(self, env: dict[str, str], start) -> None:
        for when in ("never", ""):
            self.answers(start({**env, "GPUTUNE_PROBE": when}))
        assert self.probes(env) == []

    def test_a_named_profile_is_not_measured_over(self, env: dict[str, str], start) -> None:
        self.answers(start({**env, "GPUTUNE_PROFILE": "/no/such.yaml", "GPUTUNE_PROBE": "always"}))
        assert self.probes(env) == []

    @pytest.mark.parametrize("cache", ["/proc/no-such-folder", "/dev/null/x"])
    def test_without_a_place_to_share_it_nothing_is_measured(self, env: dict[str, str], start, cache: str) -> None:
        [process] = start({**env, "XDG_CACHE_HOME": cache})
        out, said = process.communicate(timeout=60)
        assert (process.returncode, out, self.probes(env)) == (0, "None\n", [])
        assert said.startswith(f"gputune: not probed: {cache}")
        assert "set XDG_CACHE_HOME to a folder that can be written" in said

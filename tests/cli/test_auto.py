"""`gputune apply auto`: which profile it takes, and how one process measures while the others wait.

Where processes are to probe, a stand-in measures: it writes its pid down, waits for the file GATE, and returns a
profile.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eight_ranks import PROBE, SHOW, Rank, answers, probes, split, variables
from forked import gputune
from making import command, environ, profile, program, python
from planted import on_terminal

from gputune.host import Host
from gputune.profile import Fingerprint, load, places, save
from gputune.runtime import locate
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def here() -> Fingerprint:
    return local_fingerprint(Host(environ=environ()))


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def keep(here: Fingerprint, cache: str, threads: int) -> Path:
    return places.keep(profile({"omp_threads": threads}, fingerprint=here), here, {"XDG_CACHE_HOME": cache})


def apply_auto(cache: str, *options: str, cwd: Path | str = ".", **variables: str) -> Any:
    return gputune("apply", *options, "--", *SHOW, env=environ(XDG_CACHE_HOME=cache, **variables), cwd=cwd)


class TestChoosing:
    def test_the_named_one_comes_before_the_cached_one(self, here: Fingerprint, cache: str, tmp_path: Path) -> None:
        keep(here, cache, threads=3)
        save(profile({"omp_threads": 5}, fingerprint=here), tmp_path / "own.yaml")
        assert apply_auto(cache, "auto").stdout == '{"settings":{"omp_threads":3}}\n'
        assert (
            apply_auto(cache, "auto", GPUTUNE_PROFILE=str(tmp_path / "own.yaml")).stdout
            == '{"settings":{"omp_threads":5}}\n'
        )
        assert apply_auto(cache, "auto", GPUTUNE_PROFILE="").stdout == '{"settings":{"omp_threads":3}}\n'

    def test_the_shipped_one_comes_last(self, cache: str) -> None:
        h200 = Fingerprint(gpu="NVIDIA H200", torch="2.11.0+cu130")
        environ = {"XDG_CACHE_HOME": cache}
        assert locate.located(h200, environ) == load(places.shipped(h200))
        kept = keep(h200, cache, threads=3)
        assert locate.located(h200, environ) == load(kept)

    def test_with_none_the_command_runs_and_it_is_said(self, cache: str) -> None:
        done = apply_auto(cache, "auto")
        assert (done.returncode, done.stdout) == (0, "None\n")
        assert done.stderr.startswith("gputune: there is no profile for this machine (")
        assert done.stderr.count("\n") == 1
        assert not Path(cache).exists()

    def test_with_none_strict_refuses_and_without_a_command_it_is_2(self, cache: str) -> None:
        assert apply_auto(cache, "--strict", "auto").returncode == 78
        assert gputune("apply", "auto", env=environ(XDG_CACHE_HOME=cache)).returncode == 2

    def test_a_named_one_that_is_not_there_is_not_replaced_by_another(self, here: Fingerprint, cache: str) -> None:
        keep(here, cache, threads=3)
        done = apply_auto(cache, "auto", GPUTUNE_PROFILE="/no/such.yaml")
        assert (done.returncode, done.stdout) == (0, "None\n")
        assert done.stderr.startswith("gputune: /no/such.yaml: cannot be read")

    def test_a_file_of_that_name_is_named_by_its_path(self, here: Fingerprint, cache: str, tmp_path: Path) -> None:
        save(profile({"omp_threads": 7}, fingerprint=here), tmp_path / "auto")
        assert apply_auto(cache, "./auto", cwd=tmp_path).stdout == '{"settings":{"omp_threads":7}}\n'

    def test_a_script_may_say_auto_too(self, here: Fingerprint, cache: str) -> None:
        keep(here, cache, threads=1)
        code = "import gputune; print([row.after for row in gputune.apply('auto').applied])"
        assert python("-c", code, env=environ(XDG_CACHE_HOME=cache)).stdout == "[1]\n"

    def test_a_word_that_is_no_time_to_probe_costs_no_command(self, cache: str) -> None:
        done = apply_auto(cache, "auto", GPUTUNE_PROBE="yes")
        assert (done.returncode, done.stdout) == (0, "None\n")
        assert "GPUTUNE_PROBE=yes: is not a time to probe; choose from never, missing, always" in done.stderr


@pytest.fixture
def env(cache: str, tmp_path: Path) -> dict[str, str]:
    return variables(tmp_path, cache)


def probe(env: dict[str, str], folder: Path, *options: str) -> Any:
    return python("-c", PROBE, "probe", "-o", "p.yaml", *options, env=env, cwd=folder)


def test_a_probe_fills_the_cache(env: dict[str, str], cache: str, tmp_path: Path) -> None:
    assert probe(env, tmp_path).returncode == 0
    [kept] = (Path(cache) / "gputune").iterdir()
    assert kept.read_bytes() == (tmp_path / "p.yaml").read_bytes()
    threads = load(kept).settings["omp_threads"].value
    assert apply_auto(cache, "auto").stdout == f'{{"settings":{{"omp_threads":{threads}}}}}\n'


def test_what_the_cached_profile_chose_stands_unless_a_probe_is_to_be_fresh(
    env: dict[str, str], tmp_path: Path
) -> None:
    def said(*options: str, **variables: str) -> str:
        return probe(env | variables, tmp_path, *options).stderr

    assert "before: " not in said()
    assert "before: " not in said("--fresh")
    assert "before: " not in said(NVIDIA_TF32_OVERRIDE="0")
    [kept] = (Path(env["XDG_CACHE_HOME"]) / "gputune").iterdir()
    chose = load(kept).settings["omp_threads"].value
    assert f"before: {chose}\n" in said()


def test_a_new_probe_keeps_the_programs_of_the_file_and_of_the_cache(
    env: dict[str, str], here: Fingerprint, tmp_path: Path
) -> None:
    save(profile(programs=(program(),)), tmp_path / "p.yaml")
    kept = places.keep(profile(programs=(program("eval.py"),)), here, env)
    done = probe(env, tmp_path, "--json")
    assert done.returncode == 0
    assert [one["entry"] for one in json.loads(done.stdout)["programs"]] == ["train.py"]
    assert load(tmp_path / "p.yaml").programs == (program(),)
    assert load(kept).programs == (program("eval.py"),)
    assert load(kept).settings == load(tmp_path / "p.yaml").settings


def test_an_old_file_that_cannot_be_read_stays(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("schema: 1\ngputune: [")
    done = probe(env, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gputune: -o p.yaml: line 3: ")
    assert (tmp_path / "p.yaml").read_text() == "schema: 1\ngputune: ["


@pytest.mark.parametrize(
    ("words", "variables", "why"),
    [
        ("--only conv", {}, ""),
        ("--dataset data.py:make", {}, "its DataLoader is one dataset's"),
        ("", {"NVIDIA_TF32_OVERRIDE": "0"}, "measured under NVIDIA_TF32_OVERRIDE"),
    ],
)
def test_a_probe_that_would_not_suit_other_programs_does_not(
    env: dict[str, str], tmp_path: Path, words: str, variables: dict[str, str], why: str
) -> None:
    (tmp_path / "data.py").write_text("def make(): return range(10)")
    done = probe(env | variables, tmp_path, *words.split())
    assert (done.returncode, (tmp_path / "p.yaml").exists()) == (0, True)
    assert not Path(env["XDG_CACHE_HOME"]).exists()
    assert f"gputune: not kept for gputune apply auto: {why}; " in done.stderr or not why


def test_a_quick_probe_does_not_replace_a_longer_one(env: dict[str, str], cache: str, tmp_path: Path) -> None:
    for budget in ("quick", "standard", "quick"):
        done = probe(env, tmp_path, "--budget", budget)
        [kept] = (Path(cache) / "gputune").glob("*.yaml")
        assert (kept.read_bytes() == (tmp_path / "p.yaml").read_bytes()) == ("not kept" not in done.stderr)
    assert "a longer probe may have written the one there" in done.stderr


def test_a_home_that_one_may_not_look_into_is_passed_by(
    here: Fingerprint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs as another user with root's HOME."""
    keep(here, str(tmp_path), threads=3)
    monkeypatch.setattr(places, "MACHINE", (tmp_path / "gputune",))
    path, _ = places.found(here, {"HOME": "/" + "x" * 5000})
    assert path == tmp_path / "gputune" / places.file_name(here)


def test_a_cache_that_cannot_be_written_is_said_and_the_profile_is_written(env: dict[str, str], tmp_path: Path) -> None:
    done = probe({**env, "XDG_CACHE_HOME": "/dev/null"}, tmp_path)
    assert (done.returncode, (tmp_path / "p.yaml").exists()) == (0, True)
    assert "gputune: not kept for gputune apply auto: /dev/null/gputune: " in done.stderr


class TestProbing:
    """Processes that start at once, as a scheduler starts them."""

    @pytest.fixture
    def start(self) -> Iterator[object]:
        started: list[Rank] = []

        def start(env: dict[str, str], count: int = 1) -> list[Rank]:
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

    @pytest.fixture
    def gate(self, env: dict[str, str], tmp_path: Path) -> Path:
        env["GATE"] = str(tmp_path / "gate")
        return tmp_path / "gate"

    def test_of_eight_at_once_one_probes_and_all_apply_the_same(self, env: dict[str, str], start, gate: Path) -> None:
        eight = start(env, 8)
        probing, _ = split(env, eight)
        gate.touch()
        assert {json.loads(out)["settings"]["omp_threads"] for out in answers(eight)} == {probing.pid % 4000 + 1}
        assert probes(env) == [probing.pid]

    def test_of_torchruns_ranks_too(self, env: dict[str, str]) -> None:
        """torchrun exports OMP_NUM_THREADS=1, which would then be the user's."""
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=8", "--no-python"]
        rank = ["env", "-u", "OMP_NUM_THREADS", sys.executable, "-c", PROBE, "apply", "auto", "--", *SHOW]
        done = command([*torchrun, *rank], env)
        assert done.returncode == 0, done.stderr
        values = re.findall(r'"omp_threads":(\d+)', done.stdout)  # eight write to one pipe
        assert len(probes(env)) == 1
        assert [int(value) for value in values] == [max(1, len(os.sched_getaffinity(0)) // 8)] * 8  # their shares

    def test_when_the_one_that_probes_is_killed_another_one_probes_for_the_rest(
        self, env: dict[str, str], start, gate: Path
    ) -> None:
        killed, others = split(env, start(env, 8))
        killed.kill()
        gate.touch()
        outs = answers(others)
        _, second = probes(env)
        assert {json.loads(out)["settings"]["omp_threads"] for out in outs} == {second % 4000 + 1}

    def test_nodes_that_share_a_home_probe_once_each_and_all_apply_the_first_ones(
        self, env: dict[str, str], start, tmp_path: Path
    ) -> None:
        """So that the ranks of one job have the same; the second node needs longer."""
        ranks = {}
        for node in ("a", "b"):
            ranks[node] = start({**env, "NODE": node, "GATE": str(tmp_path / f"gate-{node}")}, 2)
            split(env, ranks[node])
        outs = []
        for node in ("a", "b"):
            (tmp_path / f"gate-{node}").touch()
            outs += answers(ranks[node])
        assert len(probes(env)) == 2
        assert len(set(outs)) == 1

    def test_a_probe_that_fails_costs_no_command_and_is_not_repeated_by_those_that_waited(
        self, env: dict[str, str], start, gate: Path
    ) -> None:
        four = start({**env, "PROBE_FAILS": "1"}, 4)
        probing, others = split(env, four)
        gate.touch()
        out, said = probing.communicate(timeout=120)
        assert said.splitlines()[1] == "gputune: not probed: nothing could be measured; see: gputune check"
        assert [out, *answers(others)] == ["None\n"] * 4
        assert (probing.returncode, len(probes(env))) == (0, 1)

    def test_further_in_always_means_no_other_start(self, env: dict[str, str]) -> None:
        env["GPUTUNE_PROBE"] = "always"
        show = [sys.executable, "-c", "import os; print(os.environ['GPUTUNE_PROBE'])"]
        assert python("-c", PROBE, "apply", "auto", "--", *show, env=env).stdout == "missing\n"

    def test_missing_means_once_always_each_start_and_never_or_nothing_not_at_all(
        self, env: dict[str, str], start
    ) -> None:
        counts = []
        for when in ("never", "", "missing", "missing", "always", "always"):
            answers(start({**env, "GPUTUNE_PROBE": when}))
            counts.append(len(probes(env)))
        assert counts == [0, 0, 1, 1, 2, 3]

    @pytest.mark.parametrize("terminal", [True, False])
    def test_how_long_it_still_takes_is_told_on_a_terminal_alone(self, env: dict[str, str], terminal: bool) -> None:
        """In the log of a job the line about the minute suffices."""
        words = [sys.executable, "-c", PROBE, "apply", "auto", "--", *SHOW]
        if terminal:
            code, said = on_terminal(words, env)
        else:
            done = subprocess.run(words, env=env, capture_output=True, check=False)
            code, said = done.returncode, done.stderr
        assert code == 0
        assert b"probing this machine before the command starts" in said
        assert (b"[1/2] standing in (" in said) == terminal

    def test_at_each_start_the_programs_of_the_cached_one_are_kept(
        self, env: dict[str, str], here: Fingerprint, start
    ) -> None:
        kept = places.keep(profile({"omp_threads": 0xFFF}, programs=(program(),)), here, env)
        answers(start({**env, "GPUTUNE_PROBE": "always"}))
        assert len(probes(env)) == 1
        assert load(kept).settings["omp_threads"].value != 0xFFF
        assert load(kept).programs == (program(),)

    def test_a_named_profile_is_not_measured_over(self, env: dict[str, str], start) -> None:
        answers(start({**env, "GPUTUNE_PROFILE": "/no/such.yaml", "GPUTUNE_PROBE": "always"}))
        assert probes(env) == []

    @pytest.mark.parametrize("cache", ["/proc/no-such-folder", "/dev/null/x"])
    def test_without_a_place_to_share_it_nothing_is_measured(self, env: dict[str, str], start, cache: str) -> None:
        [process] = start({**env, "XDG_CACHE_HOME": cache})
        out, said = process.communicate(timeout=120)
        assert (process.returncode, out, probes(env)) == (0, "None\n", [])
        assert said.startswith(f"gputune: not probed: {cache}")
        assert "set XDG_CACHE_HOME to a folder that can be written" in said

"""`gputune merge`: one profile for all nodes of a job."""

from dataclasses import replace

import pytest
from forked import gputune, refusal
from making import CHOSEN, ELSEWHERE, H200, profile, program, row

from gputune.profile import load, save


def nodes(folder, *made):
    paths = [folder / f"n{number}.yaml" for number in range(1, len(made) + 1)]
    for path, one in zip(paths, made, strict=True):
        save(one, path)
    return [str(path) for path in paths]


def test_the_one_that_most_nodes_share_stands_for_all_and_the_odd_one_is_named(tmp_path):
    odd = profile({**CHOSEN, "compile": False, "cudnn_benchmark": False})
    paths = nodes(tmp_path, odd, profile(), profile())
    done = gputune("merge", *paths, "-o", "job.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"gputune: {paths[0]}: recommends other values of compile, cudnn_benchmark\n"
        f"gputune: took {paths[1]} as the profile of all 3 nodes\n"
    )
    assert load(tmp_path / "job.yaml") == profile()


def test_of_profiles_that_agree_the_one_that_measured_more_is_taken(tmp_path):
    quick = profile(measurements=(row("precision", "throughput", 1.0),))
    standard = profile(measurements=(row("precision", "throughput", 1.0), row("conv", "throughput", 1.0)))
    paths = nodes(tmp_path, quick, standard, quick)
    done = gputune("merge", *paths, "-o", "job.yaml", cwd=tmp_path)
    assert done.stderr == f"gputune: took {paths[1]} as the profile of all 3 nodes\n"
    assert load(tmp_path / "job.yaml") == standard


def test_what_only_a_rank_has_of_its_own_may_differ(tmp_path):
    other = profile(fingerprint=replace(H200, cpu_budget=3, gpu_count=8, driver="590.1"))
    paths = nodes(tmp_path, profile(), other)
    done = gputune("merge", *paths, "-o", "job.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == (
        f"gputune: {paths[1]}: measured on another CPU or number of CPUs; that node will skip omp_threads"
    )


def test_the_programs_of_all_are_kept_and_of_one_that_two_nodes_measured_the_later(tmp_path):
    early, late = program(), program(created="2026-11-22T12:00:00Z")
    other = program("eval.py", created="2026-11-20T12:00:00Z")
    paths = nodes(tmp_path, profile(programs=(late,)), profile(programs=(early, other)), profile())
    assert gputune("merge", *paths, "-o", "job.yaml", cwd=tmp_path).returncode == 0
    assert load(tmp_path / "job.yaml").programs == (late, other)


def test_nodes_of_two_kinds_have_no_profile_in_common(tmp_path):
    paths = nodes(tmp_path, profile(), profile(fingerprint=ELSEWHERE))
    difference = "device (NVIDIA H200 there, NVIDIA A100"
    assert refusal("merge", *paths, "-o", "job.yaml", cwd=tmp_path).startswith(
        f"gputune: {paths[1]}: was not measured on the same device and torch as {paths[0]}: {difference}"
    )
    assert not (tmp_path / "job.yaml").exists()


@pytest.mark.slow
def test_a_file_that_is_missing_or_broken_is_named(tmp_path):
    (tmp_path / "n2.yaml").write_text("schema: [")
    [good] = nodes(tmp_path, profile())
    for bad in ("n2.yaml", "n3.yaml"):
        assert refusal("merge", good, bad, "-o", "job.yaml", cwd=tmp_path).startswith(f"gputune: {bad}: ")


def test_a_dash_is_stdout(tmp_path):
    [path] = nodes(tmp_path, profile())
    done = gputune("merge", path, "-o", "-", cwd=tmp_path)
    assert done.stdout == (tmp_path / "n1.yaml").read_text()


def test_where_it_cannot_be_written_nothing_is_merged(tmp_path):
    assert "mkdir -p" in refusal("merge", *nodes(tmp_path, profile()), "-o", "no/such/folder.yaml", cwd=tmp_path)

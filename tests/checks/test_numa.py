import pytest
from recorded import RecordedHost, found

from gputune.checks import numa

CALL = "CpuAffinity:64"


def finding(words, **overrides):
    [only] = found(numa, gpu={CALL: words}, **overrides)
    return only


@pytest.mark.parametrize(("words", "near"), [([0xFFFF_0000, 0], "16-31"), ([0, 0b1011], "64-65,67")])
def test_a_process_that_may_not_run_near_its_gpu_is_a_warning(words, near):
    warned = finding(words)
    assert (warned.severity, warned.subject) == ("WARNING", "GPU 0")
    assert warned.message == f"the CPUs near it are {near}, but this process may run only on 0-15"
    assert warned.remedy.startswith(f"docker run --cpuset-cpus={near} IMAGE  # ")


@pytest.mark.parametrize(
    ("environ", "files", "remedy"),
    [
        ({}, {"/.dockerenv": None}, "taskset -cp 16-31 $$  # "),
        ({"SLURM_JOB_ID": "7"}, {}, "#SBATCH --gres-flags=enforce-binding  # "),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {}, "ask for the Topology Manager's policy"),
    ],
)
def test_the_remedy_is_for_what_chose_the_cpus(environ, files, remedy):
    assert finding([0xFFFF_0000, 0], environ=environ, files=files).remedy.startswith(remedy)


@pytest.mark.parametrize(("words", "near"), [([0xFFFF], "0-15"), ([0xFFFF_8000], "15-31"), ([1], "0")])
def test_one_cpu_near_it_is_enough(words, near):
    fine = finding(words)
    assert (fine.severity, fine.subject) == ("OK", "GPU 0")
    assert f"({near})" in fine.message


def test_a_gpu_that_torch_does_not_see_may_be_anywhere():
    devices = RecordedHost("nvidia-h200-x8").torch["devices"][:1]
    each = found(numa, "nvidia-h200-x8", gpu={CALL: [0, 0, 1]}, gpu_index=3, torch={"devices": devices})
    assert [one.severity for one in each] == ["OK"] + ["NOT_APPLICABLE"] * 7


def test_where_torch_sees_none_every_gpu_counts():
    assert finding([0, 1], torch={"devices": []}).severity == "WARNING"


def test_no_cpu_at_all_is_no_answer():
    unread = finding([0, 0])
    assert (unread.severity, unread.subject) == ("UNKNOWN", "GPU 0")
    assert "NVML answered '[0, 0]'" in unread.message

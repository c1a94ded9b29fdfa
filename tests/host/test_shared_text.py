"""Texts that others may read do not tell who and where, and stay readable."""

import os
import pwd
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.host import shared_text
from gputune.host.shared_text import Cleaner, Owner, owner

ANN = Owner(
    homes=("/home/ann",), users=("annabeth", "jo"), hosts=("node17.example.org", "node17"), jobs=("4711", "98.pbs"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("/home/ann/data/x.bin", "~/data/x.bin"),
        ("cannot write to /home/ann.", "cannot write to ~."),
        ("PATH=/home/ann/bin:/usr/bin", "PATH=~/bin:/usr/bin"),
        ("file:///home/ann/x", "file://~/x"),
        ("/home/anna/x", "/home/USER/x"),
        ("/home/ann-old/x", "/home/USER/x"),
        ("/mnt/home/annabeth/x", "/mnt/home/USER/x"),
        ("/Users/bob/x", "/Users/USER/x"),
        ("/tmp/torchinductor_annabeth/x", "/tmp/torchinductor_USER/x"),
        ("user annabeth (1234)", "user USER (UID)"),
        ("user jo (1234), /scratch/jo", "user USER (UID), /scratch/USER"),
        ("node17.example.org:29500, node17: down", "HOST:29500, HOST: down"),
        ("/tmp/node17-ib0, rank0-node17, node17.yaml", "/tmp/HOST-ib0, rank0-HOST, HOST.yaml"),
        ("NODE17: down", "HOST: down"),
        ("node17.hpc.example.org:29500", "HOST:29500"),
        ("/sys/fs/cgroup/slurm/uid_1000/job_815/step_0", "/sys/fs/cgroup/slurm/uid_UID/job_JOB/step_0"),
        ("/scratch/4711/x slurm-4711.out", "/scratch/JOB/x slurm-JOB.out"),
        ("98.pbs", "JOB"),
        ("/kubepods/pod12345678-1234-1234-1234-123456789abc/x", "/kubepods/podPOD/x"),
    ],
)
def test_who_and_where_are_replaced(text: str, shared: str) -> None:
    assert Cleaner(ANN).text(text) == shared


@pytest.mark.parametrize(
    "text",
    [
        "4711 MiB are left, 2.4711 s, 0-4711",
        "joint, mojo, jo-jo",
        "annabethan",
        "node170 and xnode17",
        "/usr/lib/python3/dist-packages/torch",
        "NVIDIA H200, driver 580.159.04",
        "https://github.com/pytorch/pytorch@main",
        "file:///usr/lib/libcuda.so.1",
        "RuntimeError: expected scalar type Float but found Half at train.py:12",
        "max_split_size_mb:128,expandable_segments:True",
        "a@b",
        "4711",
        "jo",
    ],
)
def test_other_words_and_numbers_stay(text: str) -> None:
    assert Cleaner(ANN).text(text) == text


def test_data_is_cleaned_in_its_form_and_counted() -> None:
    clean = Cleaner(ANN)
    data = {"reason": "/home/ann/x", "rows": ({"message": ["/home/ann"], "value": "/home/ann"},), "n": 1, "none": None}
    assert clean.all(data, shared_text.TEXTS) == {
        "reason": "~/x", "rows": ({"message": ["~"], "value": "/home/ann"},), "n": 1, "none": None,
    }  # fmt: skip
    assert clean.counts["home folder"] == 2


def test_the_owner_is_read_from_environment_passwd_and_kernel(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    whose = owner({"HOME": str(tmp_path / "link"), "USER": "root", "LOGNAME": "annabeth", "SLURM_JOB_ID": "4711",
                   "HOSTNAME": "n1.example.org", "MASTER_ADDR": "localhost"})  # fmt: skip
    assert {str(tmp_path / "link"), str(real), pwd.getpwuid(os.getuid()).pw_dir} <= set(whose.homes) | {"/"}
    assert "annabeth" in whose.users
    assert "root" not in whose.users, "half of all containers have that one"
    assert whose.jobs == ("4711",)
    assert {"n1.example.org", "n1"} <= set(whose.hosts)
    assert "localhost" not in whose.hosts


def cleaned(text: str, **names: str) -> str:
    return Cleaner(owner(names)).text(text)


@pytest.mark.parametrize("user", ["max", "will", "may", "min", "long", "mlp", "batch", "jo"])
def test_a_user_whose_name_is_a_word_is_replaced_where_it_is_a_name(user: str) -> None:
    prose = f"{user}_split_size_mb:512 and the user {user} see {user}-autotune {user}=3 x={user}, a {user} of {user}2"
    assert cleaned(prose, USER=user) == prose
    told = (
        f"/tmp/torchinductor_{user}/a /tmp/torchinductor_{user} /scratch/{user}/x {user}@example.org user {user} (5)"
        f" USER={user}"
    )
    assert user not in cleaned(told, USER=user)


@pytest.mark.parametrize("variables", [{"HOSTNAME": "train"}, {"SLURMD_NODENAME": "train.example.org"}])
def test_a_host_whose_name_is_a_word_is_replaced_where_it_is_a_name(variables: dict[str, str]) -> None:
    prose = "programs that train nothing; python train.py --config /w/train.yaml /w/train_x /w/train-x train: 3"
    assert cleaned(prose, **variables) == prose
    told = "/net/train/x a@train http://train:80/x host train.hpc.org down; connect to train:29500, MASTER_ADDR=train"
    assert cleaned(told, **variables).count("HOST") == told.count("train")
    assert cleaned("the compute mode", HOSTNAME="compute") == "the compute mode", "words of any length"


def test_job_id_is_a_job_s_only_beside_the_grid_engine() -> None:
    assert owner({"JOB_ID": "train"}).jobs == owner({"JOB_ID": "4711"}).jobs == ()
    assert owner({"JOB_ID": "train", "SGE_ROOT": "/sge"}).jobs == ()
    assert (
        owner({"JOB_ID": "4711", "SGE_ROOT": "/sge"}).jobs == owner({"JOB_ID": "4711", "PE": "mpi"}).jobs == ("4711",)
    )


def test_a_list_of_slurm_s_is_replaced_and_so_are_its_plain_names() -> None:
    names = "node[01-04,07],gpu-a,login1"
    text = f"gpu-a: /x/login1.log SLURM_JOB_NODELIST={names} [3] 12 07"
    assert cleaned(text, SLURM_JOB_NODELIST=names) == "HOST: /x/HOST.log SLURM_JOB_NODELIST=HOST [3] 12 07"
    assert cleaned("1 2 [1-4]", SLURM_JOB_NODELIST="[1-4],[") == "1 2 [1-4]"


def test_the_user_is_known_by_a_login_with_a_domain_and_by_the_home_folder() -> None:
    for names in ({"LOGNAME": "annabeth@corp.com"}, {"LOGNAME": "CORP\\annabeth"}, {"HOME": "/home/corp.com/annabeth"}):
        assert cleaned("/scratch/annabeth/x", **names) == "/scratch/USER/x"


def test_facts_that_are_a_name_are_replaced_by_their_key() -> None:
    clean = Cleaner(Owner())
    facts = {"scheduler": {"job": "8", "cpus": "8"}, "environment": {"OMP_NUM_THREADS": "8", "SLURM_JOB_ID": "8"},
             "process": {"uid": 1000, "user": "max", "user_variable": "root", "mode": "max"}}  # fmt: skip
    assert clean.all(facts) == {
        "scheduler": {"job": "JOB", "cpus": "8"}, "environment": {"OMP_NUM_THREADS": "8", "SLURM_JOB_ID": "JOB"},
        "process": {"uid": None, "user": "USER", "user_variable": "root", "mode": "max"},
    }  # fmt: skip
    unknown = {"uid": 1000, "user": None}
    assert clean.all(unknown) == unknown, "a finding is about the id of a user without a name"


@pytest.mark.parametrize("part", ["a", "/", "/a_", "_", ".a", "node1", "[1,", "annabeth", "job", "@", "user jo ",
                                  "://", "a:@", "://a:b@", "://!", "?", '"@', "://a:b "])  # fmt: skip
def test_a_long_text_takes_time_in_proportion(part: str) -> None:
    clean = Cleaner(Owner(users=("annabeth", "jo"), hosts=("node[1-4]", "node1", "train"), jobs=("4711",)))
    before = time.process_time()
    clean.text("://!:" + part * ((1 << 15) // len(part)) + "@x")
    assert time.process_time() - before < 1


@pytest.mark.parametrize("home", ["", "/", "relative", "//"])
def test_a_home_that_is_none_replaces_nothing(home: str) -> None:
    assert not {"", "/"} & set(owner({"HOME": home}).homes)


@given(st.text(max_size=80))
def test_any_text_may_be_cleaned_twice(text: str) -> None:
    clean = Cleaner(ANN)
    once = clean.text(text)
    assert "/home/ann/" not in once
    assert clean.text(once).count("~") == once.count("~")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("http://ann:s3cret@proxy:3128/simple", "http://proxy:3128/simple"),
        ("git+https://s3cret@example.org/a/b.git@main", "git+https://example.org/a/b.git@main"),
        ("https://:s3cret@example.org", "https://example.org"),
        ("no route to 'http://ann:s3cret@proxy:3128'.", "no route to 'http://proxy:3128'."),
        ("http://ann:a/s3cret@proxy/x", "http://proxy/x"),
        ("http://ann:a?s3cret#@proxy/x", "http://proxy/x"),
        ("http://ann:p@a/s3cret@proxy/x", "http://proxy/x"),
        ("http://ann:s3cr", "http://..."),
        (r'{"a":"http:\/\/ann:s3cret@h\/x"}', r'{"a":"http:\/\/h\/x"}'),
        ("https://example.org/blob?sig=s3cret&se=1 is gone", "https://example.org/blob?... is gone"),
        ("https://example.org/cb#access_token=s3cret", "https://example.org/cb#..."),
        ("http://proxy:3128/simple", "http://proxy:3128/simple"),
        ("(http://[::1]:8080/x)", "(http://[::1]:8080/x)"),
    ],
)
def test_logins_and_queries_are_cut_from_urls(text: str, left: str) -> None:
    assert Cleaner(Owner()).text(text) == left


_PASSWORDS = st.text(alphabet=st.characters(blacklist_categories=("Cs", "Z", "Cc")), max_size=12)
_USERS = st.text(alphabet="abcXYZ019._-%+~", max_size=8)


@given(before=st.text(max_size=20), user=_USERS, password=_PASSWORDS, after=st.sampled_from(["", "/x", ":80/x y", "'"]))
def test_a_password_of_any_characters_is_cut_from_a_url(before: str, user: str, password: str, after: str) -> None:
    text = f"{before} https://{user}:s3cret{password}@example.org{after}"
    assert "s3cret" not in Cleaner(Owner()).text(text)

"""Remedies as a check in a container prints them, taken at their word: the container is started anew with the option
that the remedy names, or its shell types the command. The finding is gone then.
"""

import json
import os
import re
import resource
import shlex

import pytest
import stand_in
from checks.test_remedies import remedies

pytestmark = pytest.mark.containers

CHECK = ("gputune", "check", "--json", "--fail-on=never", "--only")
USER = "--user=12345:12345"
HELD_MIB, LIMIT_MIB = 1390, 1536
HOLDING = ("python3", "-c", f"import subprocess, sys; held = b'1' * ({HELD_MIB} << 20); subprocess.run(sys.argv[1:])")
"""A program before the check that leaves less than a tenth of the limit."""


def asked(docker, image, name, options, *, typed="", before=()):
    """The findings of one check in a new container, whose shell has first typed this."""
    words = ["bash", "-c", f'{typed}\nexec "$@"', "bash", *before, *CHECK, name]
    result = docker.run(image, *words, options=options)
    if "error setting rlimit" in result.stderr:
        pytest.skip("no engine that is started here may raise a limit")
    assert result.stdout, result.stderr
    return json.loads(result.stdout)["findings"]


def complaint(docker, image, name, options, **more):
    [one] = [one for one in asked(docker, image, name, options, **more) if one["remedy"]]
    assert one["severity"] in ("WARNING", "ERROR")
    return one


def gone(findings):
    return {one["severity"] for one in findings} <= {"OK", "NOT_APPLICABLE"}


def options_of(remedy):
    """Those of `docker run OPTIONS IMAGE`, in a remedy's command or in its comment."""
    return shlex.split(re.search(r"docker run (.+?) IMAGE", remedy)[1])


@pytest.fixture
def infiniband(tmp_path):
    """An InfiniBand adapter by the look of its device files."""
    (tmp_path / "uverbs0").touch()
    tmp_path.chmod(0o755)
    return [f"--volume={tmp_path}:/dev/infiniband"]


@pytest.fixture
def torch_2_6(tmp_path):
    """A torch that needs a name for its user."""
    stand_in.torch(tmp_path)
    (tmp_path / "torch.py").write_text((tmp_path / "torch.py").read_text().replace("2.13.0", "2.6.0"))
    tmp_path.chmod(0o755)
    return [f"--volume={tmp_path}:/torch:ro", "--env=PYTHONPATH=/torch"]


@pytest.fixture
def no_torch(tmp_path):
    """Which takes time and memory to import."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    tmp_path.chmod(0o755)
    return [f"--volume={tmp_path}:/torch:ro", "--env=PYTHONPATH=/torch"]


SPINNING = ("bash", "-c", 'timeout 2 bash -c "while :; do :; done"; exec "$@"', "bash")
RESTARTED = [
    ("shm_size", ["--shm-size=16m"], ()),
    ("cpu_quota", ["--cpus=0.5", "--cpuset-cpus=0-1"], ()),
    ("cpu_throttled", ["--cpus=0.1", "--cpuset-cpus=0-1"], SPINNING),
    ("memory_left", [f"--memory={LIMIT_MIB}m"], HOLDING),
    ("open_files_limit", ["--ulimit=nofile=100:100"], ()),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", RESTARTED, ids=[name for name, *_ in RESTARTED])
def test_a_container_started_with_the_remedy_s_option_has_the_fault_no_more(docker, image, no_torch, case):
    name, options, before = case
    fault = [*options, *no_torch]
    remedy = complaint(docker, image, name, fault, before=before)["remedy"]
    after = asked(docker, image, name, [*fault, *options_of(remedy)], before=before)
    assert gone(after), (remedy, after)


def test_memory_may_be_locked_for_infiniband(docker, image, infiniband):
    fault = ["--ulimit=memlock=65536:65536", *infiniband]
    remedy = complaint(docker, image, "memlock_limit", fault)["remedy"]
    after = asked(docker, image, "memlock_limit", [*fault, *options_of(remedy)])
    assert gone(after), (remedy, after)


@pytest.mark.parametrize("typed", [True, False], ids=["in its shell", "anew"])
def test_a_user_without_a_name_is_given_one(docker, image, torch_2_6, typed):
    fault = [USER, *torch_2_6]
    remedy = complaint(docker, image, "unknown_uid", fault)["remedy"]
    added = [] if typed else options_of(remedy)
    after = asked(docker, image, "unknown_uid", [*fault, *added], typed=remedy if typed else "")
    assert gone(after), (remedy, after)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("typed", [True, False], ids=["in its shell", "anew"])
def test_a_profiler_that_an_image_injects_is_taken_out(docker, image, tmp_path, typed):
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nENV CUDA_INJECTION64_PATH=/opt/x.so LD_PRELOAD=\n")
    docker.build(tmp_path, "--tag=injecting")
    remedy = complaint(docker, "injecting", "injection", [])["remedy"]
    after = asked(docker, "injecting", "injection", [] if typed else options_of(remedy), typed=remedy if typed else "")
    assert gone(after), (remedy, after)


TYPED = [
    ("cpu_quota", ["--cpus=1.5", "--cpuset-cpus=0-1"]),
    ("open_files_limit", [f"--ulimit=nofile=100:{resource.getrlimit(resource.RLIMIT_NOFILE)[1]}"]),
    ("cache_folders", ["--read-only", "--tmpfs=/tmp", USER]),
    ("launch_blocking", ["--env=CUDA_LAUNCH_BLOCKING=1"]),
    ("library_logging", ["--env=NCCL_DEBUG=INFO"]),
    ("memory_caching", ["--env=PYTORCH_NO_CUDA_MEMORY_CACHING=1"]),
    ("thread_count", ["--env=TORCHELASTIC_RUN_ID=7", "--env=LOCAL_WORLD_SIZE=2", "--cpuset-cpus=0-1"]),
    ("cuda_visible_devices", ["--env=CUDA_VISIBLE_DEVICES=0"]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "fault"), TYPED, ids=[name for name, _ in TYPED])
def test_a_container_s_shell_that_types_the_remedy_has_the_fault_no_more(docker, image, name, fault):
    remedy = complaint(docker, image, name, fault)["remedy"]
    after = asked(docker, image, name, fault, typed=remedy)
    assert gone(after), (remedy, after)


def test_where_nothing_can_be_written_a_folder_is_mounted_and_then_the_caches_move_there(docker, image):
    fault = ["--read-only", USER]
    mounted = [*fault, *options_of(complaint(docker, image, "cache_folders", fault)["remedy"])]
    remedy = complaint(docker, image, "cache_folders", mounted)["remedy"]
    after = asked(docker, image, "cache_folders", mounted, typed=remedy)
    assert gone(after), (remedy, after)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("given", ["0", "0,3", "all", "none"])
def test_docker_takes_the_option_that_asks_for_gpus(docker, image, given):
    """It then looks for NVIDIA's runtime, which is not here."""
    fault = [f"--env=NVIDIA_VISIBLE_DEVICES={given}", "--env=NVIDIA_REQUIRE_CUDA=cuda>=12.0"]
    words = ["gputune", "check", "--json", "--fail-on=never", "--require-gpu", "--only=gpu_absent"]
    [found] = json.loads(docker.run(image, *words, options=fault).stdout)["findings"]
    asking = docker.run(image, "true", options=options_of(found["remedy"]))
    assert (asking.returncode, "could not select device driver" in asking.stderr) == (125, True), asking.stderr


def test_docker_has_every_option_that_remedies_name(docker):
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", docker.docker("run", "--help").stdout))
    named = {words for remedy in remedies() for words in re.findall(r"docker run (.+?) IMAGE", remedy)}
    options = {word.partition("=")[0] for words in named for word in shlex.split(words) if word.startswith("-")}
    assert len(options) >= 7
    assert options <= known


@pytest.mark.exhaustive
def test_a_compiler_and_the_headers_are_installed_from_debian(docker, image):
    """Over the host's network, in one container, until nothing is missing."""
    check = " ".join([*CHECK, "compile_needs"])
    read = "import json, sys; print([one['remedy'] for one in json.load(sys.stdin)['findings'] if one['remedy']][0])"
    script = (
        f'for each in 1 2 3; do {check} > /tmp/found; remedy=$(python3 -c "{read}" < /tmp/found) 2>/dev/null || break; '
        'echo "$remedy" >&2; eval "$remedy" >&2; done; cat /tmp/found'
    )
    proxies = [f"--env={name}={value}" for name, value in os.environ.items() if name.lower().endswith("_proxy")]
    words = ["run", "--rm", "--network=host", "--user=root", *proxies, image, "bash", "-c", script]
    result = docker.docker(*words, check=False, seconds=600)
    if "Temporary failure resolving" in result.stderr:
        pytest.skip("no network here")
    assert "apt-get install" in result.stderr
    assert gone(json.loads(result.stdout)["findings"]), result.stderr[-3000:]


def test_a_container_is_restarted_as_the_remedies_say(docker, image):
    with docker.running(image, "sleep", "60", options=["--entrypoint="]) as container:
        restarted = docker.docker("restart", "--time", "0", container.name, check=False)
        assert restarted.returncode == 0, restarted.stderr

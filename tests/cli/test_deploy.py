"""`gputune deploy docker` and `gputune deploy kubernetes` as a user types them."""

from pathlib import Path

import pytest
import yaml
from forked import gputune, refusal
from making import environ, profile, python, written

from gputune.cli import _choices
from gputune.errors import UsageError

SHIPPED = str(Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml")
JOB = ["deploy", "kubernetes", "job"]


def pod(*words):
    result = gputune(*JOB, *words)
    assert (result.returncode, result.stderr) == (0, "")
    return yaml.safe_load(result.stdout)["spec"]["template"]["spec"]


def test_docker_prints_the_line_for_this_machine():
    image = "registry:5000/me/gputune@sha256:0a"
    result = gputune("deploy", "docker", "--image", image, "--", "python", "-c", "print('it is')")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith(f"""  {image} python -c 'print('"'"'it is'"'"')'\n""")
    assert "--gpus all" in result.stdout or not Path("/dev/nvidia0").exists()
    assert "--shm-size=" in result.stdout


def test_without_a_command_the_image_has_its_own():
    assert gputune("deploy", "docker").stdout.endswith("\n  gputune\n")


def test_the_options_of_a_job_arrive():
    words = ["--image", "me/train:2", "--gpus", "4", "--cpus", "48", "--memory", "512Gi", "--runtime-class", "nvidia"]
    spec = pod(*words, "--", "torchrun", "--nproc-per-node=4", "train.py")
    [main] = spec["containers"]
    assert main["image"] == "me/train:2"
    assert main["resources"]["limits"] == {"cpu": "48", "memory": "512Gi", "nvidia.com/gpu": 4}
    assert main["command"][-3:] == ["torchrun", "--nproc-per-node=4", "train.py"]
    assert spec["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize(
    ("gpus", "limits"),
    [
        ("0", {"cpu": "4", "memory": "16Gi"}),
        ("1", {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}),
        ("8", {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": 8}),
    ],
)
def test_each_gpu_comes_with_cpus_and_memory(gpus, limits):
    [main] = pod("--gpus", gpus, "--", "true")["containers"]
    assert main["resources"]["limits"] == limits
    assert main["image"] == "gputune"


def test_what_follows_the_dashes_is_the_command_of_a_strict_job():
    words = ["sh", "-c", 'echo "a: b" # ü 😀\n', "--", "--gpus", "yes", "1e3", ""]
    spec = pod("--name", "a", "--strict", "--", *words)
    assert spec["containers"][0]["command"] == ["gputune", "apply", "--strict", "/gputune/profile.yaml", "--", *words]
    shell, option, script = spec["initContainers"][0]["command"]
    assert (shell, option) == ("sh", "-c")
    gate, probe = script.split(" && exec ")
    assert gate.startswith("gputune check --only ")
    assert gate.endswith(",expected_gpus --expect-gpus 1 --fail-on unknown --timeout 20")
    assert probe == "gputune probe --device all -o /gputune/profile.yaml"


def test_a_daemonset():
    result = gputune("deploy", "kubernetes", "daemonset", "--name", "nodes", "--namespace", "gpu-operator")
    assert yaml.safe_load(result.stdout)["metadata"]["namespace"] == "gpu-operator"


def test_no_invalid_profile_is_delivered(tmp_path):
    (tmp_path / "p.yaml").write_text("schema: 1\nsettings: {nonsense: {value: 1}}\n")
    fault = refusal("deploy", "kubernetes", "configmap", "--profile", "p.yaml", cwd=tmp_path)
    assert "there is no such setting" in fault


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docker", "--image", ""], "--image : is not a valid image name; write it as in"),
        (["docker", "--", ""], "the command is empty"),
        (["docker", "--gpus", "1"], "no such option"),
        (["kubernetes", "cronjob"], "no such command 'cronjob'"),
        (["kubernetes", "job"], "the command is missing; write it at the end"),
        (["kubernetes", "job", "--gpus", "-1", "--", "true"], "--gpus"),
        (["kubernetes", "job", "--cpus", "0", "--", "true"], "--cpus"),
        (["kubernetes", "job", "--memory", "", "--", "true"], "--memory : is not a valid size"),
        (["kubernetes", "job", "--memory", "lots", "--", "true"], "--memory lots: is not a valid size; write it as in"),
        (["kubernetes", "job", "--name", "A_1", "--", "true"], "--name A_1: is not a valid Kubernetes name; use at"),
        (["kubernetes", "job", "--namespace", "", "--", "true"], "--namespace : is not a valid"),
        (["kubernetes", "job", "--runtime-class", "a/b", "--", "true"], "--runtime-class a/b: is not a valid"),
        (["kubernetes", "daemonset", "--name", "a.b"], "--name a.b: is not a valid Kubernetes name"),
        (["kubernetes", "daemonset", "--image", "a\nb"], "is not a valid image name"),
        (["kubernetes", "configmap"], "missing option '--profile'"),
        (["kubernetes", "configmap", "--profile", "no-such.yaml"], "no-such.yaml: cannot be read"),
        (["kubernetes", "configmap", "--profile", "."], ".: is a directory"),
        (["kubernetes", "configmap", "--profile", SHIPPED, "--name", "A"], "--name A: is not a valid Kubernetes name"),
    ],
)
def test_a_refusal_is_one_line(words, said, tmp_path):
    assert said in refusal("deploy", *words, cwd=tmp_path)


@pytest.mark.parametrize("name", ["", "A", "a" * 64, "a\n# b", "a\n", "-a", "a.b", "a/b"])
def test_a_name_that_kubernetes_refuses(name):
    with pytest.raises(UsageError, match="is not a valid Kubernetes name"):
        _choices.kubernetes_names(runtime_class=name)


@pytest.mark.parametrize("image", ["", "-v/:/host", "a b", "a\nb"])
def test_an_image_that_no_engine_takes(image):
    with pytest.raises(UsageError, match="is not a valid image name"):
        _choices.image(image)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["deploy", "docker"], JOB])
def test_a_command_that_is_no_text_is_one_line(words):
    code = f"import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'gputune', *{words}, '--', b'\\xff'])"
    result = python("-c", code)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "the command is not UTF-8 text" in result.stderr


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_only_gets_the_same_data():
    env = environ(PYTHONIOENCODING="ascii")
    result = python("-m", "gputune", *JOB, "--", "echo", "ü 😀", env=env)
    [main] = yaml.safe_load(result.stdout)["spec"]["template"]["spec"]["containers"]
    assert main["command"][-1] == "ü 😀"


def test_a_profile_that_is_written_in_other_characters_arrives(tmp_path):
    path = written(tmp_path, profile(findings=()))
    text = Path(path).read_text() + "# Füße 😀 and \t a tab, and a blank at the end \n"
    Path(path).write_text(text)
    result = gputune("deploy", "kubernetes", "configmap", "--profile", path, "--name", "mine")
    assert (result.returncode, result.stderr) == (0, "")
    manifest = yaml.safe_load(result.stdout)
    assert (manifest["metadata"]["name"], manifest["data"]) == ("mine", {"profile.yaml": text})

"""The DaemonSet: what the API server makes of it, and what its loop does."""

import signal
import subprocess

import psutil
import pytest
import stand_in
from making import environ, on_path, until
from manifests import valid

from gputune import checks
from gputune.deploy import node_checks
from gputune.deploy.kubernetes_daemonset import FEATURES, TEXTFILES, loop, text

pytestmark = pytest.mark.cluster

TEXT = text("gputune-check", None, "gputune:1", None)


def pod(manifest=TEXT):
    return valid(manifest)["spec"]["template"]["spec"]


def test_it_selects_its_own_pods():
    manifest = valid(TEXT)
    assert (manifest["apiVersion"], manifest["kind"]) == ("apps/v1", "DaemonSet")
    assert manifest["spec"]["selector"]["matchLabels"] == manifest["spec"]["template"]["metadata"]["labels"]


def test_it_takes_no_gpu_and_sees_them_all():
    [container] = pod()["containers"]
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]
    assert container["securityContext"]["privileged"] is True


def test_it_runs_where_there_are_gpus_also_on_nodes_that_are_kept_for_them():
    spec = pod()
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"] for term in terms] == [
        [{"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In", "values": ["true"]}],
        [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}],
    ]
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert spec["automountServiceAccountToken"] is False


def test_it_writes_into_two_folders_of_the_node_and_nowhere_else():
    spec = pod()
    [container] = spec["containers"]
    folders = {volume["name"]: volume["hostPath"] for volume in spec["volumes"] if "hostPath" in volume}
    assert {folder["path"] for folder in folders.values()} == {FEATURES, TEXTFILES}
    assert {folder["type"] for folder in folders.values()} == {"DirectoryOrCreate"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert all(mounts[name] == folder["path"] for name, folder in folders.items())
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_class_of_runtime_where_it_is_named():
    manifest = text("a", "gpu", "b", "nvidia")
    assert pod(manifest)["runtimeClassName"] == "nvidia"
    assert valid(manifest)["metadata"]["namespace"] == "gpu"


def test_what_it_asks_is_so_for_every_pod_at_any_time():
    assert set(node_checks.NAMES) <= set(checks.names())
    assert not set(node_checks.NAMES) & checks.momentary()


@pytest.fixture
def started(tmp_path):
    """The loop as the container starts it, but for the two folders; without a GPU it finds an error each time."""
    for name in ("bin", "features", "textfiles"):
        (tmp_path / name).mkdir()
    path = on_path(tmp_path / "bin")
    env = environ(PATH=path, PYTHONPATH=stand_in.torch(tmp_path), NVIDIA_VISIBLE_DEVICES="all")
    [container] = pod()["containers"]
    *shell, script = container["command"]
    assert script == loop()
    words = [*shell, loop(str(tmp_path / "features"), str(tmp_path / "textfiles"))]
    child = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield child, tmp_path
    child.terminate()  # and with it what it started, which holds its pipes
    child.communicate()


def below(child):
    try:
        return [one.name() for one in psutil.Process(child.pid).children(recursive=True)]
    except psutil.NoSuchProcess:  # one that has just ended
        return []


def still_there(processes):
    """What runs on, and has not merely been left for somebody to wait for it."""
    _, left = psutil.wait_procs(processes, timeout=3)
    return [one.as_dict(["name", "status", "cmdline"]) for one in left if one.status() != psutil.STATUS_ZOMBIE]


class TestItsLoop:
    def test_a_check_that_finds_something_does_not_end_it_and_sigterm_does_at_once(self, started):
        child, folder = started
        until(lambda: below(child) == ["sleep"])
        assert "gputune.dev/status=" in (folder / "features" / "gputune.features").read_text()
        assert 'check="gpu_absent"' in (folder / "textfiles" / "gputune.prom").read_text()
        children = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGTERM)
        assert child.wait(2) == 0
        assert not still_there(children)

    def test_a_sigterm_in_the_midst_of_a_check_leaves_neither_process_nor_file(self, started):
        child, folder = started
        until(lambda: below(child))
        children = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGTERM)
        assert child.wait(5) == 0
        assert not still_there(children)
        assert not list(folder.glob("*/.*"))

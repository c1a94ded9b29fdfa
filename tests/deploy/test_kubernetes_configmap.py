"""The ConfigMap: the profile to the last character, and the mount that its comment shows."""

from pathlib import Path

import pytest
import yaml
from forked import gputune
from hypothesis import given
from hypothesis import strategies as st
from making import environ, profile, written
from manifests import valid

from gputune.deploy.manifest import FILE, FOLDER, MOST_BYTES
from gputune.deploy.manifest import configmap as text
from gputune.errors import UsageError
from gputune.profile import dump

SHIPPED = Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml"


@pytest.mark.cluster
def test_it_holds_a_measured_profile_to_the_last_character():
    held = SHIPPED.read_text()
    manifest = valid(text(held, "gputune-profile", "team"))
    assert (manifest["kind"], manifest["apiVersion"]) == ("ConfigMap", "v1")
    assert manifest["metadata"]["namespace"] == "team"
    assert manifest["data"] == {FILE: held}


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_it_holds_any_text(held):
    assert yaml.safe_load(text(held, "a", None))["data"] == {FILE: held}


@pytest.mark.slow
def test_it_refuses_what_a_config_map_cannot_hold():
    assert len(text("é" * (MOST_BYTES // 2), "a", None)) > MOST_BYTES // 2
    with pytest.raises(
        UsageError, match="takes 1048577 bytes, and a ConfigMap holds at most 1048576; put it into the image"
    ):
        text("é" * (MOST_BYTES // 2) + "x", "a", None)


def test_lines_stay_lines():
    assert f"  {FILE}: |\n    schema: 1\n" in text(dump(profile()), "a", None)


@pytest.mark.cluster
def test_its_comment_shows_a_mount_that_the_api_server_takes():
    shown = text("schema: 1\n", "my-profile", None).split("apiVersion")[0]
    _, block = shown.split("#   spec:")
    spec = yaml.safe_load("spec:" + block.replace("\n#   ", "\n"))["spec"]
    [container], [volume] = spec["containers"], spec["volumes"]
    assert volume["configMap"] == {"name": "my-profile"}
    assert container["env"] == [{"name": "GPUTUNE_PROFILE", "value": f"{FOLDER}/{FILE}"}]
    assert [(mount["name"], mount["mountPath"]) for mount in container["volumeMounts"]] == [(volume["name"], FOLDER)]
    container["image"] = "gputune:1"
    valid(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}))


@pytest.fixture
def mounted(tmp_path):
    """A ConfigMap as the kubelet mounts it: links to a folder that it exchanges as a whole."""
    held = tmp_path / "..2026_11_22_10_00_00.1234"
    held.mkdir()
    written(held, profile({"omp_threads": 3}))
    (held / "profile.yaml").chmod(0o644)
    (tmp_path / "..data").symlink_to(held.name)
    (tmp_path / "profile.yaml").symlink_to("..data/profile.yaml")
    return str(tmp_path / "profile.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("by_name", [True, False])
def test_gputune_applies_what_is_mounted(mounted, by_name):
    env = environ() if by_name else environ(GPUTUNE_PROFILE=mounted)
    words = ["--ignore-fingerprint", mounted if by_name else "auto"]
    done = gputune("apply", *words, "--", "sh", "-c", "echo $OMP_NUM_THREADS", env=env)
    assert (done.returncode, done.stdout) == (0, "3\n")

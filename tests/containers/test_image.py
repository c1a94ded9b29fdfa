"""What is in the image, and what is not."""

import json
from pathlib import Path

import pytest
from containers.limits import LIMITS

pytestmark = pytest.mark.containers

REPOSITORY = Path(__file__).parents[2]

PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps({one.metadata["Name"]: one.version for one in reversed(list(distributions()))}))
"""

BYTECODE = """
import importlib.util
from pathlib import Path
[folder] = importlib.util.find_spec("gputune").submodule_search_locations
flags = {}
for path in Path(folder).rglob("*.py"):
    made = Path(importlib.util.cache_from_source(path))
    word = int.from_bytes(made.read_bytes()[4:8], "little") if made.exists() else None
    flags[path.relative_to(folder).as_posix()] = word
assert "live/shim/sitecustomize.py" in flags
print({name: flag for name, flag in flags.items() if flag != UNCHECKED_HASH})
"""


def packages(docker, image):
    return json.loads(docker.run(image, "-c", PACKAGES, options=["--entrypoint=python3"]).stdout)


def test_every_package_of_the_base_is_there_in_its_version(docker, base, image):
    before, after = packages(docker, base), packages(docker, image)
    assert before["torch"].startswith("2.13.0")
    assert before["typing_extensions"] == "4.15.0"  # a dependency's newest requirement would have replaced it
    assert before.items() <= after.items()
    assert {"gputune", "typer", "psutil"} <= after.keys() - before.keys()


def test_a_conflict_with_a_package_of_the_base_is_an_error(docker, base, image, tmp_path):
    install = "PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-deps typer==0.9.0"
    (tmp_path / "Dockerfile").write_text(f"FROM {base}\nRUN {install}\n")
    docker.build(tmp_path, "--tag=conflicting")
    result = docker.build(REPOSITORY, "--target=wheels", arguments={"BASE_IMAGE": "conflicting"}, check=False)
    assert result.returncode != 0
    assert "typer" in result.stderr
    assert "ResolutionImpossible" in result.stderr


def test_its_configuration(docker, image):
    [found] = json.loads(docker.docker("inspect", image).stdout)
    config = found["Config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/usr/bin/tini", "-s", "--", "gputune", "apply", "auto", "--"]
    assert config["Cmd"] == ["gputune", "check"]
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in config["Env"]
    assert not [one for one in config["Env"] if one.startswith(("NVIDIA_VISIBLE_DEVICES=", "PIP_"))]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    assert labels.keys() == {"title", "description", "licenses", "version", "revision", "created"}
    assert (
        labels.items() >= {"title": "gputune", "licenses": "Apache-2.0", "version": "1.2.3", "revision": "abc"}.items()
    )


def test_all_of_gputune_is_compiled_to_bytecode_that_is_not_held_against_its_source(docker, image):
    """The root may be read-only, and whoever builds may set the times of files."""
    assert docker.run(image, "python3", "-c", "UNCHECKED_HASH = 0b01\n" + BYTECODE).stdout == "{}\n"


def test_without_a_command_it_shows_a_check(docker, image):
    result = docker.run(image)
    assert result.returncode == 0
    assert "warnings" in result.stdout.splitlines()[-1]
    assert result.stderr.count("\n") == 1
    assert docker.run(image, options=LIMITS).stdout.count("\ncpu_quota ") == 1


def test_an_image_of_ones_own_takes_gputune_from_it(docker, base, image):
    """By the lines of docs/containers.md: into the Python that is there, and no package there is replaced."""
    docker.build(Path(__file__).parent / "own_image", "--tag=own", arguments={"BASE_IMAGE": base})
    before, after = packages(docker, base), packages(docker, "own")
    assert before.items() <= after.items()
    assert after["gputune"] == packages(docker, image)["gputune"]
    result = docker.run("own", "sh", "-c", "echo mine; exit 37")
    assert (result.stdout, result.returncode, result.stderr.count("\n")) == ("mine\n", 37, 1)

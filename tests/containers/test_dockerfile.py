"""The Dockerfile by itself."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCKERFILE = Path(__file__).parents[2] / "Dockerfile"


@pytest.mark.cluster
def test_it_passes_hadolint_and_whatever_is_left_out_says_why():
    hadolint = Path(sys.executable).with_name("hadolint")
    result = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")
    lines = DOCKERFILE.read_text().splitlines()
    ignored = [number for number, line in enumerate(lines) if line.startswith("# hadolint ignore=")]
    assert all(lines[number - 1].startswith("# ") for number in ignored)


@pytest.mark.containers
def test_it_needs_nothing_newer_than_the_builder_inside_any_docker():
    """Nothing that another front end would have to be fetched for."""
    text = DOCKERFILE.read_text()
    assert not [word for word in ("# syntax", "<<", "--link", "--network") if word in text]

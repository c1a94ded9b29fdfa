"""An engine for all tests here, the base image (Debian's Python and torch), and gputune's own on top of it.

Where no engine can be had the tests are skipped, and the end of the run says so and why.
"""

import configparser
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from containers.engine import NoEngine, engine
from containers.limits import APPLIED, LIMITS, USER

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
SUITE, PYTHON = "bookworm", "3.11"
TORCH = "torch==2.13.0"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

NOT_TESTED = pytest.StashKey()


def pytest_terminal_summary(terminalreporter, config):
    if why := config.stash.get(NOT_TESTED, None):
        terminalreporter.section("CONTAINERS WERE NOT TESTED", red=True)
        terminalreporter.write_line(why)


@pytest.fixture(scope="session")
def docker(request):
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=143))  # and clean up
    try:
        if not SOURCES.exists():
            raise NoEngine(f"the base image needs Debian's packages, and there is no {SOURCES}")
        with engine() as one:
            yield one
        assert not (left := one.left()), left
    except NoEngine as error:
        request.config.stash[NOT_TESTED] = str(error)
        pytest.skip(f"no containers: {error}")
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def base(docker):
    """An image like PyTorch's own: torch in the system's Python, and some packages of it older than the newest."""
    with tempfile.TemporaryDirectory(dir=docker.folder) as name:
        folder = Path(name)
        with _torch_wheel(folder) as wheel:
            _debian(docker, folder)
        assert wheel.returncode == 0, "pip download failed"
        shutil.copytree(HERE / "base", folder, dirs_exist_ok=True)
        (folder / "debian.tar").unlink()
        docker.build(folder, "--tag=base", arguments={"TORCH": TORCH})
    return "base"


def _torch_wheel(folder):
    """Started, for it takes as long as Debian does. The host's configuration says where from."""
    words = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", PYTHON]
    return subprocess.Popen([sys.executable, *words, "--dest", str(folder), TORCH], stderr=subprocess.DEVNULL)


def _debian(docker, folder):
    """Debian with Python, the host's certificates, and its configuration of pip, which is also that of an image's
    build.
    """
    (folder / "pip.conf").write_text(_pip_configuration())
    certificates = Path(os.environ.get("PIP_CERT") or CERTIFICATES)
    uploads = [f"upload {folder}/pip.conf /etc/pip.conf"]
    uploads += [f"upload {certificates} {CERTIFICATES}"] if certificates.exists() else []
    words = ["mmdebstrap", "--variant=minbase", "--include=python3-pip,python3-yaml,ca-certificates", "--quiet"]
    words += ["--hook-dir=/usr/share/mmdebstrap/hooks/eatmydata", "--skip=output/mknod"]
    words += [f"--customize-hook={upload}" for upload in uploads]
    environ = {**os.environ, "TMPDIR": str(folder)}
    with SOURCES.open("rb") as sources, (folder / "log").open("wb") as log:
        made = subprocess.Popen([*words, SUITE, f"{folder}/debian.tar", "-"], stdin=sources, stderr=log, env=environ)
        try:
            made.wait()
        finally:  # it unmounts and removes what it made
            made.terminate()
            made.wait()
    assert made.returncode == 0, (folder / "log").read_text(errors="replace")
    docker.docker("import", f"{folder}/debian.tar", "debian")


def _pip_configuration():
    """What pip was told on this machine that holds in a container too: no folders."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    kept = configparser.ConfigParser(interpolation=None)
    kept["global"] = {"cert": CERTIFICATES}
    for line in told.stdout.splitlines():
        name, _, value = line.partition("=")
        places = " ".join(place for place in value.strip("'\"").split("\\n") if place.startswith("http"))
        key = name.rpartition(".")[2]
        if key in ("index-url", "extra-index-url") and places:
            kept["global"][key] = places
    with tempfile.TemporaryFile("w+") as file:
        kept.write(file)
        file.seek(0)
        return file.read()


@pytest.fixture(scope="session")
def built(docker, base):
    docker.build(REPOSITORY, "--tag=gputune", arguments={"BASE_IMAGE": base, "VERSION": "1.2.3", "REVISION": "abc"})
    return "gputune"


@pytest.fixture(scope="session")
def first_starts(docker, built):
    """Two containers that start at once, with the limits of `LIMITS`, and one empty folder; measuring takes them a
    minute.
    """
    cache = docker.folder / "cache"
    cache.mkdir()
    os.chown(cache, *USER)
    options = [*LIMITS, "--tmpfs=/tmp", f"--volume={cache}:/cache"]
    options += ["--env=XDG_CACHE_HOME=/cache", "--env=GPUTUNE_PROBE=missing"]
    with ExitStack() as stack:
        start = partial(docker.running, built, "python3", "-c", APPLIED, options=options)
        yield SimpleNamespace(cache=cache, options=options, both=[stack.enter_context(start()) for _ in range(2)])


@pytest.fixture(scope="session")
def image(built, request):
    """gputune's. Where what starts first is asked about, that measures while the other tests run."""
    if any("first_starts" in item.fixturenames for item in request.session.items):
        request.getfixturevalue("first_starts")
    return built


@pytest.fixture(scope="session")
def nvidia(docker, base, image):
    docker.build(REPOSITORY, "--tag=nvidia", "--target=ngc", arguments={"BASE_IMAGE": base})
    return "nvidia"

"""The tasks of this repository by the names that people expect: `nox -l` lists them, `nox -s tests` runs one.

They run in the environment that is active, which CONTRIBUTING.md sets up: one of its own for each would take torch's
several gigabytes each time. `nox` alone runs tests, lint and types; `.ci/run` is what every change must pass.
"""

import sys

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["tests", "lint", "types"]


def python(session, *words):
    session.run(sys.executable, *words)


def pytest(session, *options):
    python(session, "-P", "-m", "pytest", "-q", *options, *session.posargs)


@nox.session
def tests(session):
    """The default tests, side by side on all CPUs."""
    pytest(session)


@nox.session
def slow(session):
    """Tests that are not quick, then those that are timed and so run alone."""
    pytest(session, "-m", "slow and not timed")
    pytest(session, "-m", "timed and not real")


@nox.session
def real(session):
    """Real quotas, mounts and users: as root."""
    pytest(session, "-m", "real")


@nox.session
def cluster(session):
    """What is printed for other programs, against those programs' own rules (pip install -e '.[cluster]')."""
    pytest(session, "-m", "cluster")


@nox.session
def frameworks(session):
    """Trainings with the real Lightning, transformers and Accelerate (pip install -e '.[frameworks]')."""
    pytest(session, "-m", "frameworks")


@nox.session
def torches(session):
    """Scripts with everything put in, with the Pythons in GPUTUNE_TEST_TORCHES, whose paths colons separate."""
    pytest(session, "-m", "torches")


@nox.session
def coverage(session):
    """The default tests, with the lines that none of them reaches."""
    pytest(session, "--cov", "--cov-report=term-missing:skip-covered")


@nox.session
def lint(session):
    """ruff, and the layers."""
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "check", "--preview", "--select", "PLW1514", "gputune", "gputune_start.py")
    python(session, "-m", "ruff", "format", "--check", ".")
    python(session, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")


@nox.session
def types(session):
    """mypy, over gputune and the tests' helpers."""
    python(session, "-m", "mypy")


@nox.session
def rederive(session):
    """Write anew what follows from the code: shipped profiles and golden reports."""
    python(session, "tests/rederive.py", *session.posargs)

"""The tasks of this repository by the names that people expect: `nox -l` lists them, `nox -s tests` runs one.

`nox` alone runs tests, lint and types. `.ci/run` runs everything, with the tests that nox leaves to their own sessions.
"""

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "types"]

session = nox.session(venv_params=["--system-site-packages"])
"""A session whose environment has the torch of the Python that runs nox, where that has one."""


def pytest(session, *options, extra="test"):
    session.install(f".[{extra}]")
    session.run("python", "-P", "-m", "pytest", "-q", *options, *session.posargs)


@session
def tests(session):
    """The default tests, side by side on all CPUs."""
    pytest(session)


@session
def slow(session):
    """Tests that take seconds each, then those that are timed and so run alone."""
    pytest(session, "-m", "slow")
    pytest(session, "-m", "timed and not real")


@session
def real(session):
    """Real quotas, mounts and users: as root."""
    pytest(session, "-m", "real")


@session
def cluster(session):
    """What is printed for other programs, against those programs' own rules."""
    pytest(session, "-m", "cluster", extra="test,cluster")


@session
def frameworks(session):
    """Trainings with the real Lightning, transformers and Accelerate."""
    pytest(session, "-m", "frameworks", extra="test,frameworks")


@session
def coverage(session):
    """The default tests, with the lines that none of them reaches."""
    pytest(session, "--cov", "--cov-report=term-missing:skip-covered")


@session
def lint(session):
    """ruff, and the layers."""
    session.install(".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@session
def types(session):
    """mypy, over gputune and the tests' helpers."""
    session.install(".[test,lint]")
    session.run("mypy")


@session
def rederive(session):
    """Write anew what follows from the code: shipped profiles and golden reports."""
    session.install("-e", ".[test]")
    session.run("python", "tests/rederive.py", *session.posargs)

"""Whose machine this is: the names and ids that `shared_text` replaces."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

USERS = ("LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER", "PBS_O_LOGNAME", "NB_USER")
HOSTS = (
    "HOSTNAME", "HOST", "NODE_NAME", "POD_NAME", "MASTER_ADDR", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST",
    "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST", "LSB_SUB_HOST", "PBS_O_HOST",
)  # fmt: skip
JOBS = (
    "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID", "LSB_JOBID", "PBS_JOBID", "JOB_ID", "COBALT_JOBID",
    "FLUX_JOB_ID", "OAR_JOB_ID",
)  # fmt: skip
"""The variables that hold nothing but such a name or id."""

COMMON = frozenset({
    "root", "nobody", "user", "users", "guest", "admin", "administrator", "ubuntu", "debian", "centos", "fedora",
    "rocky", "ec2-user", "azureuser", "vagrant", "jovyan", "runner", "coder", "dev", "developer", "app", "data",
    "test", "docker", "podman", "slurm", "nvidia", "cuda", "gpu", "torch", "pytorch", "python", "conda", "home",
    "tmp", "usr", "var", "opt", "lib", "bin", "etc", "run", "proc", "sys", "mnt", "srv", "work", "workspace",
    "scratch", "localhost", "localhost.localdomain", "127.0.0.1", "0.0.0.0", "::1", "::", "host", "node",  # noqa: S104
    "gputune", "job", "nonexistent", "project", "h100", "h200", "gh200", "b200", "gb200", "a100", "v100", "l40s",
    *(f"gpu{index}" for index in range(16)),
})  # fmt: skip
"""Names that many machines share."""

LONGEST_WORD = 5
"""A user's name of up to so many letters and nothing else may be a word of prose or of an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose machine it is: what `Cleaner` replaces."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


def owner(environ: Mapping[str, str]) -> Owner:
    """The owner of this process, by its environment, /etc/passwd and the kernel's name of the host."""
    import pwd

    try:
        known = pwd.getpwuid(os.getuid())
        name, home = known.pw_name, known.pw_dir
    except KeyError:  # a user id without a name
        name, home = "", ""
    homes = {path.rstrip("/") for path in (environ.get("HOME", ""), home) if path.startswith("/")}
    homes |= {os.path.realpath(path) for path in homes if path}
    return Owner(
        homes=tuple(sorted(homes - {"", "/"}, key=lambda path: (-len(path), path))),
        users=_names(_users([*_values(environ, USERS), name, *(path.rpartition("/")[2] for path in homes)])),
        hosts=_names(_hosts(environ, os.uname().nodename)),
        jobs=_names(_jobs(environ)),
    )


def _users(found: Iterable[str]) -> Iterator[str]:
    """The names with and without their domain, before `@` or a backslash. A short number may be any other number."""
    for name in found:
        for part in (name, name.partition("@")[0], name.rpartition("\\")[2]):
            if not part.isdigit() or len(part) > LONGEST_WORD:
                yield part


def _hosts(environ: Mapping[str, str], node: str) -> Iterator[str]:
    """The names with and without their domain; a list of Slurm's (`node[01-04],login1`) as a whole, and its names."""
    yield from (node, node.partition(".")[0])
    for variable in HOSTS:
        value = environ.get(variable, "").strip()
        if variable == "HOST" and value != node and not _looks_like_a_host(value):
            continue
        for name in (value, *value.split(",")):
            if re.match(r"[A-Za-z]", name) and ("[" not in name or name == value):
                yield from (name, name.partition(".")[0] if "[" not in name else name)
            elif re.fullmatch(r"[\d.]+\.[\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*", name):  # an address
                yield name


def _looks_like_a_host(value: str) -> bool:
    """Whether HOST, which is also what a server listens on, names a machine."""
    address = re.fullmatch(r"[\d.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", value)
    return not address and re.search(r"[\d.]", value) is not None


def _jobs(environ: Mapping[str, str]) -> Iterator[str]:
    """The ids with and without the server's name. JOB_ID is the Grid Engine's, if it is there at all."""
    grid_engine = "SGE_ROOT" in environ or "PE" in environ
    for value in _values(environ, [name for name in JOBS if name != "JOB_ID" or grid_engine]):
        yield from (part for part in (value, value.partition(".")[0]) if re.search(r"\d", part))


def _values(environ: Mapping[str, str], names: Collection[str]) -> Iterator[str]:
    return (environ[name].strip() for name in names if environ.get(name, "").strip())


def _names(found: Iterable[str]) -> tuple[str, ...]:
    """The names that tell something, the longest first."""
    return tuple(
        sorted({name for name in found if name and name.lower() not in COMMON}, key=lambda one: (-len(one), one))
    )

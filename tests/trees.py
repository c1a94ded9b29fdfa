"""Small /proc and /sys trees, as text by path, and a real `Host` over them."""

from collections.abc import Mapping
from pathlib import Path

from gputune.host import Host

CGROUP = "/sys/fs/cgroup"


def grow(root: Path, files: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Host:
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Host(root=str(root), environ=environ or {})


def v2(group: str, limits: Mapping[str, str], *, root: str = "/", mount: str = CGROUP) -> dict[str, str]:
    """A process in `group` of a v2 hierarchy; `limits` are paths below the mount."""
    return {
        "/proc/self/cgroup": f"0::{group}\n",
        "/proc/self/mountinfo": f"30 20 0:26 {root} {mount} rw,nosuid - cgroup2 cgroup2 rw\n",
        f"{mount}/cgroup.controllers": "cpuset cpu io memory pids\n",
        **{f"{mount}/{path}": text for path, text in limits.items()},
    }


def v1(
    controllers: str, group: str, limits: Mapping[str, str], *, root: str = "/", unified: bool = False
) -> dict[str, str]:
    """A process in `group` of a v1 hierarchy; `unified` puts the empty v2 hierarchy of a hybrid host beside it."""
    mount = f"{CGROUP}/{controllers}"
    beside = f"41 31 0:38 / {CGROUP}/unified rw - cgroup2 cgroup2 rw\n" if unified else ""
    return {
        "/proc/self/cgroup": f"4:{controllers}:{group}\n1:name=systemd:/\n" + ("0::/\n" if unified else ""),
        "/proc/self/mountinfo": (
            f"32 31 0:29 {root} {mount} rw,relatime shared:9 - cgroup cgroup rw,{controllers}\n{beside}"
        ),
        **({f"{CGROUP}/unified/cgroup.controllers": "\n"} if unified else {}),
        **{f"{mount}/{path}": text for path, text in limits.items()},
    }

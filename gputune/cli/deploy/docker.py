"""`gputune deploy docker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gputune.deploy import IMAGE

if TYPE_CHECKING:
    from gputune.deploy.docker import Machine


def docker(
    image: Annotated[str, typer.Option("--image", help="The image to run.")] = IMAGE,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="The command to run in it; else gputune check.")
    ] = None,
) -> None:
    """Print the docker run command for this machine: its GPUs, shared memory, limits, and a folder to keep profiles in."""
    from gputune.cli.deploy import _values
    from gputune.deploy.docker import text

    named, words = _values.image(image), _values.command(command)
    print(text(_machine(), named, words), end="")


def _machine() -> Machine:
    """What a container may use is the host's, whatever holds for this process."""
    from gputune.deploy.docker import Machine
    from gputune.facts import container, memory, pci
    from gputune.facts.gap import Gaps
    from gputune.host import Host

    host, gaps = Host(), Gaps()
    held = [found for found in pci.read(host, gaps) or () if found.driver == "nvidia"]
    listed = gaps.read("gpu.count", lambda: host.nvml().count()) or 0
    return Machine(
        gpus=max(len(held), listed),
        infiniband=container.read(host).infiniband,
        cpus=host.cpu_counts()[0],
        memory_bytes=memory.read(host, gaps).total_bytes,
    )

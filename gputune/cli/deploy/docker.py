"""`gputune deploy docker`: the `docker run` command for this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gputune.deploy import IMAGE

if TYPE_CHECKING:
    from gputune.deploy.docker import Machine


def docker(
    image: Annotated[str, typer.Option(metavar="IMAGE", help="The image to run.")] = IMAGE,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CMD...]", help="The command to run in it. Without one: gputune check."),
    ] = None,
) -> None:
    """Print the docker run command for this machine, with its GPUs, shared memory, limits and a folder for profiles."""
    from gputune.cli.deploy import _values
    from gputune.deploy.docker import text
    from gputune.host.stderr import show

    named, words = _values.image(image), _values.command(command)
    show(text(_machine(), named, words), end="")


def _machine() -> Machine:
    """Return what this machine can give a container: counts of the host, not of this process and its limits."""
    from gputune.deploy.docker import Machine
    from gputune.facts import container, memory, pci
    from gputune.facts._nvml_answers import gpu_count
    from gputune.facts.gap import Gaps
    from gputune.host import Host

    host, gaps = Host(), Gaps()
    bound = [device for device in pci.read(host, gaps) or () if device.driver == "nvidia"]
    try:
        listed = gaps.read("gpu.count", lambda: gpu_count(host.nvml().count())) or 0
    finally:
        host.release()
    return Machine(
        gpus=max(len(bound), listed),
        infiniband=container.read(host).infiniband,
        cpus=host.cpu_counts()[0],
        memory_bytes=memory.read(host, gaps).total_bytes,
    )

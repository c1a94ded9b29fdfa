"""`gputune deploy`: print ready-made files for a container engine or a cluster, a subcommand each."""

import typer

from gputune.cli import _help
from gputune.cli.deploy import kubernetes
from gputune.cli.deploy.docker import docker
from gputune.cli.deploy.slurm import slurm

GROUP = typer.Typer(cls=_help.Group, help="Print ready-made files for a container engine or a cluster.")
for _verb in (docker, slurm):
    GROUP.command(_verb.__name__, cls=_help.Command)(_verb)
GROUP.add_typer(kubernetes.GROUP, name="kubernetes")

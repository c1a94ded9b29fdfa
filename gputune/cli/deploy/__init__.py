"""`gputune deploy`: print ready-made files for a container engine or a cluster, a subcommand each."""

import typer

from gputune.cli.deploy import kubernetes
from gputune.cli.deploy.docker import docker
from gputune.cli.deploy.slurm import slurm

GROUP = typer.Typer(help="Print ready-made files for a container engine or a cluster.", no_args_is_help=True)
for _verb in (docker, slurm):
    GROUP.command(_verb.__name__)(_verb)
GROUP.add_typer(kubernetes.GROUP, name="kubernetes")

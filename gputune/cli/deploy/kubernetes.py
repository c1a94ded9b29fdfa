"""`gputune deploy kubernetes`: the manifest of a Job, a DaemonSet or a ConfigMap."""

from pathlib import Path
from typing import Annotated

import typer

from gputune.cli import _choices
from gputune.deploy import IMAGE
from gputune.errors import UsageError

EPILOG = _choices.epilog("""
  # A job on one GPU
  gputune deploy kubernetes job -- python train.py
  # A check of every GPU node
  gputune deploy kubernetes daemonset
""")

GROUP = typer.Typer(help="Print a Kubernetes manifest.", epilog=EPILOG, no_args_is_help=True, rich_markup_mode=None)

_Image = Annotated[str, typer.Option("--image", metavar="IMAGE", help="An image that contains gputune.")]
_Namespace = Annotated[
    str | None, typer.Option(metavar="NAME", help="The namespace of the object.", show_default="kubectl's")
]
_RuntimeClass = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The RuntimeClass of NVIDIA's runtime, if it is not the nodes' default."),
]


@GROUP.command(
    epilog=_choices.epilog("""
  # On one GPU
  gputune deploy kubernetes job -- python train.py
  # On all GPUs of a node
  gputune deploy kubernetes job --gpus 8 -- ./train.sh
""")
)
def job(
    command: Annotated[list[str] | None, typer.Argument(metavar="CMD", help="After --: the command to run.")] = None,
    image: _Image = IMAGE,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the Job.")] = "gputune-job",
    namespace: _Namespace = None,
    runtime_class: _RuntimeClass = None,
    gpus: Annotated[int, typer.Option(metavar="N", help="GPUs of one node; 0 for a job on CPUs.", min=0, max=1024)] = 1,
    cpus: Annotated[int | None, _choices.count("CPUs of the pod.", "4 for each GPU", most=4096)] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory of the pod, as in 64Gi.", show_default="16Gi for each GPU"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Do not run the command without a profile.")] = False,
) -> None:
    """A Job that measures its node, then runs CMD with the profile."""
    from gputune.deploy.kubernetes_job import Job, text
    from gputune.host.stderr import show

    _choices.kubernetes_names(name=name, namespace=namespace, runtime_class=runtime_class)
    words = _choices.command(command)
    if not words:
        remedy = "write it at the end: gputune deploy kubernetes job -- python train.py"
        raise UsageError("the command is missing", remedy)
    spec = Job(
        name=name, namespace=namespace, image=_choices.image(image), runtime_class=runtime_class, gpus=gpus,
        cpus=cpus or 4 * max(1, gpus), memory=f"{16 * max(1, gpus)}Gi" if memory is None else memory,
        strict=strict, command=words,
    )  # fmt: skip
    try:
        show(text(spec), end="")
    except ValueError:
        fault = f"--memory {(memory or '')[:40]}: is not a valid size"
        raise UsageError(fault, "write it as in 512Mi, 64Gi or 1Ti") from None


@GROUP.command(
    epilog=_choices.epilog("""
  gputune deploy kubernetes daemonset                       # Print it
  gputune deploy kubernetes daemonset | kubectl apply -f -  # Start it
""")
)
def daemonset(
    image: _Image = IMAGE,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the DaemonSet.")] = "gputune-check",
    namespace: _Namespace = None,
    runtime_class: _RuntimeClass = None,
) -> None:
    """A DaemonSet that checks the GPU nodes, and writes labels and metrics."""
    from gputune.deploy.kubernetes_daemonset import text
    from gputune.host.stderr import show

    _choices.kubernetes_names(name=name, namespace=namespace, runtime_class=runtime_class)
    show(text(name, namespace, _choices.image(image), runtime_class), end="")


@GROUP.command(
    epilog=_choices.epilog("""
  # Print it
  gputune deploy kubernetes configmap --profile p.yaml
  # Its name and namespace
  gputune deploy kubernetes configmap --help
""")
)
def configmap(
    profile: Annotated[Path, _choices.place("FILE", "The profile that gputune probe or tune wrote.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the ConfigMap.")] = "gputune-profile",
    namespace: _Namespace = None,
) -> None:
    """A ConfigMap that brings a profile into pods, with the mount that their manifests need."""
    from gputune.deploy.manifest import configmap as text
    from gputune.host.stderr import show
    from gputune.profile import checked_text

    _choices.kubernetes_names(name=name, namespace=namespace)
    checked = checked_text(profile)  # so that it is not a pod that finds out that the profile is not valid
    show(text(checked, name, namespace), end="")

"""What `--help` adds to the options of each verb: one short line, examples to copy, and exit codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

USAGE = ("2", "wrong usage, or a file that cannot be read")
MEASURE = ("3", "nothing could be measured, or the result could not be written")
OTHERS = ("others", "gputune --help")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    short: str
    """The line of the verb in the help above it."""
    examples: tuple[tuple[str, str], ...]
    """Commands, each with what it is for."""
    exit_codes: tuple[tuple[str, str], ...] = (("0", "success"), USAGE, OTHERS)


def path(ctx: Any) -> str:
    """The words after `gputune` that led to this context: the key of its page."""
    words = []
    while ctx.parent is not None:
        words.append(ctx.info_name)
        ctx = ctx.parent
    return " ".join(reversed(words))


PAGES: Mapping[str, Page] = {
    "": Page(
        short="",
        examples=(
            ("gputune check", "What is wrong here"),
            ("gputune tune -- python train.py", "Find the fastest settings for one script"),
            ("gputune apply auto -- python train.py", "Run it with what was found, here or for all programs"),
        ),
        exit_codes=(
            ("0", "success"),
            ("1", "check: a finding at or above --fail-on; status: a setting failed"),
            USAGE,
            MEASURE,
            ("70", "a bug in gputune, or it cannot start"),
            ("78", "refused by apply --strict"),
            ("126, 127", "apply: CMD cannot be run, or is not found; otherwise its own code"),
            ("129, 130, 143", "hung up, interrupted, terminated"),
            ("141", "the reader of stdout went away"),
        ),
    ),
    "check": Page(
        short="Find what is wrong here, and how to fix it.",
        examples=(
            ("gputune check", "What is wrong here"),
            ("gputune check --python .venv/bin/python", "With the torch of another interpreter"),
            ("gputune check --expect-gpus 8 --fail-on warning", "In a job: exit with 1 unless all is well"),
            ("gputune check --json --only shm_size,cpu_quota", "Some checks, for another program"),
        ),
        exit_codes=(("0", "no finding at or above --fail-on"), ("1", "such a finding"), USAGE, OTHERS),
    ),
    "probe": Page(
        short="Measure this machine, and write its profile.",
        examples=(
            ("gputune probe", "Measure this machine, and write profile.yaml"),
            ("gputune probe --budget quick -o quick.yaml", "In less time, with fewer benches"),
            ("gputune probe --dataset train.py:make_dataset", "Also find the number of workers for your dataset"),
            ("gputune probe --device all --each profiles", "All GPUs of this node, side by side"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
    "show": Page(
        short="Read a profile: gains, charts and reasons.",
        examples=(
            ("gputune show profile.yaml", "What was found, and why"),
            ("gputune show profile.yaml --as-code", "As lines of Python for your script"),
            ("gputune show profile.yaml --all", "Also every setting with its reason"),
            ("gputune show profile.yaml --html profile.html", "As a page for a browser"),
        ),
    ),
    "apply": Page(
        short="Run a program with a profile applied.",
        examples=(
            ("gputune apply auto -- python train.py", "With what was measured on this machine"),
            ("gputune apply --numerics mixed auto -- python train.py", "Also mixed precision, in an unchanged script"),
            ("gputune apply --dry-run auto -- python train.py", "See what would be done"),
            ('eval "$(gputune apply profile.yaml)"', "Set the variables in this shell"),
        ),
        exit_codes=(
            ("CMD's own", "or, without CMD, 0"),
            USAGE,
            ("78", "refused by --strict"),
            ("126, 127", "CMD cannot be run, or is not found"),
            OTHERS,
        ),
    ),
    "status": Page(
        short="Show what is in force here and who chose it.",
        examples=(
            ("gputune status", "The settings of a Python that is started here"),
            ("gputune apply auto -- gputune status", "With a profile applied"),
            ("gputune status --verify", "Also compute on the GPU to see whether they took effect"),
        ),
        exit_codes=(("0", "success"), ("1", "a setting failed or did not take effect"), USAGE, OTHERS),
    ),
    "tune": Page(
        short="Find the fastest settings for one script.",
        examples=(
            ("gputune tune -- python train.py", "Find them, and write profile.yaml"),
            ("gputune tune --numerics tf32 -- python train.py", "Without mixed precision"),
            ("gputune tune -- torchrun --nproc-per-node=2 train.py", "A job of several ranks"),
            ("gputune apply profile.yaml -- python train.py", "Afterwards: train with them"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
    "batch-size": Page(
        short="Find the batch size that trains fastest.",
        examples=(
            ("gputune batch-size train.py:make_step", "make_step() returns step(batch_size)"),
            ("gputune batch-size train.py:make_step --most 512", "No batch larger than this"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
    "pad": Page(
        short="Find the size to pad a dimension to.",
        examples=(
            ("gputune pad 50257", "Measured here"),
            ("gputune pad 50257 --profile profile.yaml", "From a profile, at once"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
    "merge": Page(
        short="Make one profile for nodes of a kind.",
        examples=(
            ("gputune merge node0.yaml node1.yaml -o job.yaml", "One profile for all ranks of a job"),
            ("gputune merge node*.yaml -o -", "Look at it first"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
    "deploy": Page(
        short="Print files for Docker, Kubernetes or Slurm.",
        examples=(
            ("gputune deploy docker -- python train.py", "For this machine"),
            ("gputune deploy slurm sbatch -- python train.py", "A batch script"),
            ("gputune deploy kubernetes --help", "A Job, a DaemonSet, a ConfigMap"),
        ),
    ),
    "deploy docker": Page(
        short="Print the docker run command for this machine.",
        examples=(
            ("gputune deploy docker", "To check this machine in a container"),
            ("gputune deploy docker --image me/a:1 -- python train.py", "To train in one"),
        ),
    ),
    "deploy slurm": Page(
        short="Print a file for Slurm.",
        examples=(
            ("gputune deploy slurm sbatch --nodes 2 -- python train.py", "A batch script"),
            ("gputune deploy slurm task-prolog --profile auto", "To apply a profile to every task"),
            ("gputune deploy slurm health-check --drain", "To drain nodes that have an error"),
        ),
    ),
    "deploy kubernetes": Page(
        short="Print a Kubernetes manifest.",
        examples=(
            ("gputune deploy kubernetes job -- python train.py", "A job on one GPU"),
            ("gputune deploy kubernetes daemonset", "A check of every GPU node"),
        ),
    ),
    "deploy kubernetes job": Page(
        short="A Job that measures its node, then runs CMD.",
        examples=(
            ("gputune deploy kubernetes job -- python train.py", "On one GPU"),
            ("gputune deploy kubernetes job --gpus 8 -- ./train.sh", "On all GPUs of a node"),
        ),
    ),
    "deploy kubernetes daemonset": Page(
        short="A DaemonSet that checks the GPU nodes.",
        examples=(
            ("gputune deploy kubernetes daemonset", "Print it"),
            ("gputune deploy kubernetes daemonset | kubectl apply -f -", "Start it"),
        ),
    ),
    "deploy kubernetes configmap": Page(
        short="A ConfigMap that brings a profile into pods.",
        examples=(
            ("gputune deploy kubernetes configmap --profile p.yaml", "Print it"),
            ("gputune deploy kubernetes configmap --help", "Its name and namespace"),
        ),
    ),
    "explain": Page(
        short="Explain a setting, a check or a bench.",
        examples=(
            ("gputune explain", "List them all"),
            ("gputune explain matmul_precision", "A setting"),
            ("gputune explain shm_size", "A check"),
            ("gputune explain launching", "Which programs gputune apply reaches"),
        ),
    ),
    "schema": Page(
        short="Print a JSON Schema of what gputune writes.",
        examples=(
            ("gputune schema > profile.schema.json", "Of a profile, for an editor"),
            ("gputune schema --of check > check.schema.json", "Of what gputune check --json prints"),
        ),
    ),
    "install-hook": Page(
        short="Reach a Python that ignores PYTHONPATH.",
        examples=(
            ("gputune install-hook --python .venv/bin/python", "Also reach python -I and -E of this one"),
            ("gputune install-hook --python .venv/bin/python --remove", "Undo that"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
    "bug-report": Page(
        short="Show what a maintainer needs to know.",
        examples=(
            ("gputune bug-report", "Read it"),
            ("gputune bug-report report.txt", "Read it, and write it to a file"),
        ),
        exit_codes=(("0", "success"), USAGE, MEASURE, OTHERS),
    ),
}
"""By the words after `gputune`, in the order in which a user meets the verbs."""

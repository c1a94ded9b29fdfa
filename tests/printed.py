"""The files of examples/ that gputune prints: each with its command at its head."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from making import gputune

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

COMMANDS = {
    "slurm/job.sh": (
        "gputune deploy slurm sbatch --nodes 2 --gpus-per-node 8 --cpus-per-task 12"
        " -- sh slurm/entrypoint.sh python ddp.py --verify --large"
    ),
    "kubernetes/job.yaml": (
        "gputune deploy kubernetes job --image me/classifier:1 --name classifier"
        " -- python3 /examples/classifier.py --large"
    ),
}

NOTES = {
    "slurm/job.sh": "Yours also names the gputune that printed it by its path. In examples/: sbatch slurm/job.sh",
    "kubernetes/job.yaml": "Dockerfile, beside this file, makes the image.",
}
"""What the head says beside the command."""


def text(name: str) -> str:
    """What the file holds if gputune prints it now."""
    printed = gputune(*shlex.split(COMMANDS[name])[1:]).stdout
    printed = re.sub(r"^gputune=\(.*\)$", "gputune=(gputune)", printed, flags=re.MULTILINE)
    head = f"# Printed by:\n#   {COMMANDS[name]}\n# {NOTES[name]}\n"
    if not printed.startswith("#!"):
        return head + "#\n" + printed
    first, _, rest = printed.partition("\n")
    return f"{first}\n{head}{rest}"


def files() -> Iterator[tuple[Path, str]]:
    """Each file's path and its new text."""
    for name in COMMANDS:
        yield EXAMPLES / name, text(name)

"""torch's errors: that memory ran out, that CUDA is broken for this process, and their text in one line."""

from collections.abc import Iterable, Iterator

from gputune.bench_process import Context
from gputune.facts.gap import Gap
from gputune.measurement import Measurement


def out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: a GPU's, or, by the words of torch's allocator, the host's."""
    import torch

    words = ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(part in str(error).lower() for part in words)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def first_sentence(error: Exception) -> str:
    """The first sentence or line of an error: those of a lack of memory go on with how it is used."""
    return str(error).split(". ")[0].split("\n")[0][:200]


def or_shortage(rows: Iterable[Measurement | Gap], fact: str, what: str = "") -> Iterator[Measurement | Gap]:
    """The rows, and where the memory does not suffice for more of them a Gap that says so, after `what`."""
    try:
        yield from rows
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        yield Gap(fact=fact, reason=f"{what}{first_sentence(error)}")


def synchronize(context: Context) -> None:
    """Wait for the device. Raises RuntimeError if an error broke CUDA for this process: nothing more works."""
    import torch

    if context.cuda:
        torch.cuda.synchronize(context.device)

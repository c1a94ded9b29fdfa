"""A model's outputs require gradients exactly where they did before settings were turned on.

torch 2.11 compiled a loss with a BERT inside of it, and what came out required none.
"""

from itertools import groupby
from typing import Any

from ...knobs._outputs import tensors
from . import Found

Pattern = tuple[bool, ...]


class GradientsDiffer(Found):
    def __init__(self, output: Any) -> None:
        super().__init__("its outputs require gradients where they did not before, or the reverse")
        self.output = output


class Requirements:
    """Where outputs may require gradients. Nothing is required as long as nothing is known."""

    def __init__(self) -> None:
        self.known: set[Pattern] = set()

    def look(self, output: Any) -> None:
        """Raises GradientsDiffer."""
        if self.known and (own := pattern(output)) and own not in self.known:
            raise GradientsDiffer(output)

    def are_as(self, output: Any, without: Any) -> bool:
        """Learn from a call without settings, and return whether the other's output is like its."""
        own = pattern(without)
        self.known.add(own)
        return pattern(output) == own


def pattern(output: Any) -> Pattern:
    """Whether an output's tensors require gradients, in order, equal neighbours once: a list of boxes has as many as an
    image shows.
    """
    return tuple(requires for requires, _ in groupby(one.requires_grad for one in tensors(output)))

"""Asserts as a program has them, which pytest does not rewrite here."""

from typing import Any


def same_dtype(one: Any, other: Any) -> None:
    assert one.dtype == other.dtype, "another dtype"


def is_laid_out(one: Any) -> None:
    assert one is not None and one.is_contiguous()  # noqa: PT018 - as programs have them


def has_length(one: Any, length: int) -> None:
    assert len(one) == length, one.dtype


def raises_itself(one: Any) -> None:
    if one.dtype:
        raise AssertionError("dtype")

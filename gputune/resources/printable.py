"""Words as a terminal, a shell or a reader takes them."""

import os


def printable(text: str, keep: str = "") -> str:
    r"""A text from a file, a variable or a device, with escapes for what cannot be seen: `\x1b` for a terminal's
    escape, `\u202e` for a mark that turns the direction of writing, `\udcff` for a byte that was no UTF-8. The
    characters of `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)


def counted(number: object, noun: str) -> str:
    """`1 GPU`, `2 GPUs`, `3 processes`."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def quoted(*words: str) -> str:
    """The words for any POSIX shell, which reads back these. What cannot be seen, but line breaks, becomes a printf."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    import shlex
    from itertools import groupby

    if word.isprintable():
        return shlex.quote(word)
    parts = ((seen, "".join(chars)) for seen, chars in groupby(word, lambda char: char.isprintable() or char == "\n"))
    return "".join(shlex.quote(part) if seen else _printf(part) for seen, part in parts)


def _printf(text: str) -> str:
    return "\"$(printf '" + "".join(f"\\{byte:03o}" for byte in os.fsencode(text)) + "')\""

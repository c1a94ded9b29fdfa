"""A setting's value in words, for tables and lines."""

from . import Value


def value_text(value: Value) -> str:
    """A setting's value for a table; `none` stands for torch's own choice."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "unknown"
    if value is None:
        return "none"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)

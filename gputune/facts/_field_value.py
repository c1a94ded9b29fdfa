"""The value in NVML's answer to nvmlDeviceGetFieldValues."""

from typing import Any

from gputune.facts._nvml_answers import sequence, whole
from gputune.host import Unreadable
from gputune.resources.unreadable import Cause

_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""By the type that NVML gives of a value (nvml.h, nvmlValueType_t), the member of the union that has it."""
_ERRORS: dict[int, tuple[str, Cause]] = {
    2: ("Invalid Argument", "no_such_call"),  # of a field that the driver does not know
    3: ("Not Supported", "not_supported"),
    13: ("Function Not Found", "no_such_call"),
    15: ("GPU is lost", "gpu_lost"),
    16: ("GPU requires a reset", "needs_reset"),
    999: ("Unknown Error", "unknown_error"),
}
"""By nvmlReturn_t."""


def field_value(answer: Any) -> Any:
    """The value of the one field that was asked for. Raises Unreadable for the error that NVML answers in its place."""
    [field] = sequence(answer, 1)
    if number := whole(field["nvmlReturn"]):
        reason, cause = _ERRORS.get(number, (f"error {number}", None))
        raise Unreadable(f"NVML: {reason}", cause)
    return field["value"][_MEMBERS[whole(field["valueType"])]]

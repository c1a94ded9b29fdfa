"""Whether NVML asks for a reset or reboot of a GPU."""

import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import recovery_action

CALL = "FieldValues:[230]"
ADDRESS = "00000000:00:06.0"


def answered(value, error=0):
    union = {
        "dVal": 0.0,
        "uiVal": value,
        "ulVal": value,
        "ullVal": value,
        "sllVal": value,
        "siVal": value,
        "usVal": value,
    }
    return [{"fieldId": 230, "scopeId": 0, "valueType": 1, "nvmlReturn": error, "value": union}]


def finding(answer, **gpu):
    [one] = found(recovery_action, gpu={CALL: answer, **gpu})
    return one


@pytest.mark.parametrize(
    ("number", "severity", "action", "typed"),
    [
        (1, "ERROR", "gpu reset", f"sudo nvidia-smi -i {ADDRESS} --gpu-reset"),
        (2, "ERROR", "node reboot", "sudo systemctl reboot"),
        (3, "ERROR", "drain P2P", f"nvidia-smi -q -i {ADDRESS} | grep Recovery"),
        (4, "ERROR", "drain and reset", f"sudo nvidia-smi -i {ADDRESS} --gpu-reset"),
        (5, "WARNING", "recover IMEX domain", "sudo systemctl restart nvidia-imex"),
        (6, "ERROR", "bus reset", "sudo systemctl reboot"),
        (7, "ERROR", "system reboot", "sudo systemctl reboot"),
    ],
)
def test_what_nvml_asks_for_is_a_complaint_about_that_gpu(number, severity, action, typed):
    one = finding(answered(number))
    assert (one.severity, one.subject) == (severity, "GPU 0")
    assert one.message.endswith(action)
    assert typed in one.remedy.partition("#")[0]


def test_nothing_to_recover_from():
    assert finding(answered(0)).severity == "OK"


@pytest.mark.parametrize(
    "answer",
    [
        answered(0, 2),
        answered(0, 3),
        answered(0, 13),
        {"unreadable": NOT_SUPPORTED},
        {"unreadable": "NVML: Function Not Found"},
    ],
    ids=str,
)
def test_a_driver_that_does_not_have_it(answer):
    one = finding(answer)
    assert (one.severity, one.message) == ("NOT_APPLICABLE", "this driver does not tell; newer ones do")


def test_a_vgpu_s_host_knows():
    one = finding(answered(0, 3), VirtualizationMode=2)
    assert (one.severity, "vGPU" in one.message) == ("NOT_APPLICABLE", True)


@pytest.mark.parametrize(
    "answer", [answered(8), answered(0, 999), answered(0, 15), {"unreadable": "NVML: Unknown Error"}, [], [{}], None, 0]
)
def test_what_was_not_read_is_unknown(answer):
    assert finding(answer).severity == "UNKNOWN"

"""Errors of a GPU: ECC, rows and pages of its memory, and the recovery that NVML asks for."""

import pytest
from recorded import NOT_SUPPORTED, UNREAD, UNSUPPORTED, RecordedHost, found, says, table

from gputune.checks import ecc_errors
from gputune.host import Unreadable

SINCE_LOAD, EVER, AT = "TotalEccErrors:1,0", "TotalEccErrors:1,1", "00000000:00:06.0"
RESET = f"; sudo nvidia-smi -i {AT} --gpu-reset; "
RESET_3 = "; sudo nvidia-smi -i 00000000:00:09.0 --gpu-reset; "


def ecc(severity, message, **gpu):
    return says(severity, message, subject="GPU 0", gpu=gpu)


test_ecc_errors = table(
    "ecc_errors",
    {
        "one error": ecc(
            "ERROR", ("^1 uncorrectable memory error ", "1 in the card's life"), **{SINCE_LOAD: 1, EVER: 1}
        ),
        "two errors": ecc(
            "ERROR", ("^2 uncorrectable memory errors ", "7 in the card's life"), **{SINCE_LOAD: 2, EVER: 7}
        ),
        "errors before the driver was loaded are no fault": ecc("OK", "4 in the card's life", **{EVER: 4}),
        "an error counts though the card's life was not read": ecc(
            "ERROR", "=5 uncorrectable memory errors since the driver was loaded", **{SINCE_LOAD: 5, EVER: UNREAD}
        ),
        "a GPU that only torch knows": says(
            "UNKNOWN", "NVML: Driver Not Loaded", nvml=Unreadable("NVML: Driver Not Loaded")
        ),
    },
    {
        f"where ECC is off nothing counts: {errors}": ecc("NOT_APPLICABLE", "^ECC is off", EccMode=[0, 1], **errors)
        for errors in [{}, {SINCE_LOAD: 1}, {SINCE_LOAD: UNSUPPORTED}]
    },
)


@pytest.mark.parametrize(
    ("unread", "name"), [(["PciInfo"], "GPU-f5f3a5e9-939a-980a-1428-1d671bf50b09"), (["PciInfo", "UUID"], "0")]
)
def test_a_gpu_without_an_address_is_reset_by_what_else_names_it(unread, name):
    one = found(ecc_errors, gpu={SINCE_LOAD: 1} | dict.fromkeys(unread, UNREAD))[0]
    assert f"sudo nvidia-smi -i {name} --gpu-reset" in one.remedy


def test_a_mig_slice_is_left_to_its_gpu():
    [device] = RecordedHost().torch["devices"]
    mig = {**device, "name": "NVIDIA H200 MIG 1g.18gb", "uuid": "another"}
    one, other = found(ecc_errors, torch={"devices": [mig]})
    assert (one.severity, one.subject) == ("OK", "GPU 0")
    assert (other.severity, other.subject) == ("NOT_APPLICABLE", "GPU 1")
    assert "MIG slice" in other.message


def mode(severity, modes, message="", remedy="", **gpu):
    return says(severity, message, remedy, subject="GPU 0", gpu={"EccMode": modes, **gpu})


test_ecc_mode = table(
    "ecc_mode",
    {
        "on and stays on": mode("OK", [1, 1]),
        "off": mode("WARNING", [0, 0], "^ECC is off: ", (f"^sudo nvidia-smi -i {AT} -e 1; ", RESET)),
        "off until a reset": mode("WARNING", [0, 1], "^ECC is off, and on only after", RESET),
        "on until a reset": mode("WARNING", [1, 0], "^ECC is on, and off after", f"^sudo nvidia-smi -i {AT} -e 1  #"),
        "shipped with it off": mode(
            "NOT_APPLICABLE", [0, 0], "as this card was shipped", Name="Tesla M60", Brand=2, DefaultEccMode=[0]
        ),
        "a consumer card": mode("NOT_APPLICABLE", UNSUPPORTED, "consumer", Name="NVIDIA GeForce RTX 3090", Brand=15),
        "a small workstation card": mode("NOT_APPLICABLE", UNSUPPORTED, "no ECC", Name="NVIDIA T1000", Brand=1),
        "a vGPU": mode("NOT_APPLICABLE", UNSUPPORTED, "vGPU", VirtualizationMode=2),
    },
    {
        f"may be off on purpose: {name} {brand}": mode("WARNING", [0, 0], "", "on purpose", Name=name, Brand=brand)
        for name, brand in [
            ("Tesla T4", 2),
            ("NVIDIA A10", 14),
            ("NVIDIA L4", 14),
            ("NVIDIA L40S", 14),
            ("Tesla V100-SXM2-32GB", 2),
        ]
    },
    {
        f"usually off: {name} {brand}": mode("NOT_APPLICABLE", [0, 0], Name=name, Brand=brand)
        for name, brand in [
            ("NVIDIA RTX A6000", 13),
            ("NVIDIA RTX A6000", 14),
            ("Quadro RTX 6000", 12),
            ("NVIDIA GeForce RTX 4090", 15),
            ("NVIDIA TITAN V", 6),
        ]
    },
    {
        f"a data-centre card counts as shipped with it on: {default}": mode("WARNING", [0, 0], DefaultEccMode=default)
        for default in [UNSUPPORTED, UNREAD, [1]]
    },
    {f"unread: {answer}": mode("UNKNOWN", answer) for answer in [UNSUPPORTED, UNREAD, [1], None]},
)


def remapped(severity, answer, message="", remedy="", **gpu):
    return says(severity, message, remedy, subject="GPU 0", gpu={"RemappedRows": answer, **gpu})


test_row_remapping = table(
    "row_remapping",
    {
        "a row waits": says("WARNING", "waiting", RESET_3, of=3, gpu={"RemappedRows": [0, 1, 1, 0]}),
        "MIG is on and does not tell": remapped("NOT_APPLICABLE", UNSUPPORTED, "MIG", MigMode=[1, 1]),
        "MIG will be on": remapped("UNKNOWN", UNSUPPORTED, NOT_SUPPORTED, MigMode=[0, 1]),
        "MIG is on and tells": remapped("WARNING", [0, 0, 1, 0], MigMode=[1, 1]),
    },
    {f"replaced rows are no fault: {answer}": remapped("OK", answer) for answer in [[0, 0, 0, 0], [3, 1, 0, 0]]},
    {
        f"a row could not be replaced: {answer}": remapped("ERROR", answer, "could not be replaced", "out of service")
        for answer in [[0, 9, 0, 1], [0, 9, 1, 1]]
    },
    {f"not read: {answer}": remapped("UNKNOWN", answer, "NVML") for answer in [UNREAD, [0, 0, 0], [0, 0, 2, 0]]},
    {
        f"before Ampere: {number}": remapped("NOT_APPLICABLE", UNSUPPORTED, "retires pages", Architecture=number)
        for number in range(2, 7)
    },
    {
        f"a data-centre GPU that tells none: {number}": remapped("UNKNOWN", UNSUPPORTED, Architecture=number)
        for number in [7, 9, UNREAD]
    },
)

VOLTA = 5


def pages(severity, answer, message="", architecture=VOLTA, **gpu):
    gpu = {"RetiredPagesPendingStatus": answer, "Architecture": architecture, **gpu}
    return says(severity, message, subject="GPU 0", gpu=gpu)


test_page_retirement = table(
    "page_retirement",
    {
        "pages wait": says(
            "WARNING",
            "waiting to be retired",
            RESET_3,
            of=3,
            others="NOT_APPLICABLE",
            gpu={"RetiredPagesPendingStatus": 1},
        ),
        "no page waits": pages("OK", 0),
    },
    {
        f"not read: {answer} {number}": pages("UNKNOWN", answer, "NVML", number)
        for answer, number in [(answer, number) for answer in (UNREAD, 2) for number in (2, 6, 9)]
    },
    {
        f"newer GPUs: {number} {name}": pages("NOT_APPLICABLE", UNSUPPORTED, f"={name} remaps rows instead", number)
        for number, name in [(7, "Ampere"), (8, "Ada"), (9, "Hopper"), (10, "Blackwell"), (13, "Rubin")]
    },
    {
        f"hardware without it: {lack}": pages("NOT_APPLICABLE", UNSUPPORTED, **lack)
        for lack in [{"Brand": 5}, {"Brand": 6}, {"VirtualizationMode": 2}]
    },
    {f"a data-centre GPU: {number}": pages("UNKNOWN", UNSUPPORTED, "", number) for number in [VOLTA, UNREAD]},
)


def recovery(value, error=0):
    union = dict.fromkeys(("uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal"), value) | {"dVal": 0.0}
    return [{"fieldId": 230, "scopeId": 0, "valueType": 1, "nvmlReturn": error, "value": union}]


def asks(severity, answer, message="", remedy="", **gpu):
    return says(severity, message, remedy, subject="GPU 0", gpu={"FieldValues:[230]": answer, **gpu})


test_recovery_action = table(
    "recovery_action",
    {
        "nothing": asks("OK", recovery(0)),
        "a vGPU": asks("NOT_APPLICABLE", recovery(0, 3), "vGPU", VirtualizationMode=2),
    },
    {
        f"{action} {number} {severity} {typed}": asks(
            severity, recovery(number), f"=NVML asks for its recovery: {action}", typed
        )
        for action, number, severity, typed in [
            ("gpu reset", 1, "ERROR", RESET),
            ("node reboot", 2, "ERROR", "^sudo systemctl reboot  #"),
            ("drain P2P", 3, "ERROR", f"nvidia-smi -q -i {AT} | grep Recovery  #"),
            ("drain and reset", 4, "ERROR", RESET),
            ("recover IMEX domain", 5, "WARNING", "^sudo systemctl restart nvidia-imex  #"),
            ("bus reset", 6, "ERROR", "^sudo systemctl reboot  #"),
            ("system reboot", 7, "ERROR", "^sudo systemctl reboot  #"),
        ]
    },
    {
        f"an older driver: {answer}": asks("NOT_APPLICABLE", answer, "=this driver does not tell; newer ones do")
        for answer in [
            recovery(0, 2),
            recovery(0, 3),
            recovery(0, 13),
            UNSUPPORTED,
            {"unreadable": "NVML: Function Not Found"},
        ]
    },
    {
        f"not read: {answer}": asks("UNKNOWN", answer)
        for answer in [recovery(8), recovery(0, 999), recovery(0, 15), UNREAD, [], [{}], None, 0]
    },
)

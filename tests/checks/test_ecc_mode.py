"""ECC that is off, or will be."""

import pytest
from recorded import NOT_SUPPORTED, found

from gputune.checks import ecc_mode

ADDRESS = "00000000:00:06.0"
NO = {"unreadable": NOT_SUPPORTED}


def finding(modes, **gpu):
    [one] = found(ecc_mode, gpu={"EccMode": modes, **gpu})
    return one


def test_on_and_stays_on():
    assert finding([1, 1]).severity == "OK"


@pytest.mark.parametrize(
    ("modes", "message", "command"),
    [
        ([0, 0], "ECC is off: ", f"sudo nvidia-smi -i {ADDRESS} -e 1; "),
        ([0, 1], "ECC is off, and on only after", f"sudo nvidia-smi -i {ADDRESS} --gpu-reset"),
        ([1, 0], "ECC is on, and off after", f"sudo nvidia-smi -i {ADDRESS} -e 1"),
    ],
)
def test_off_or_about_to_change_is_a_warning(modes, message, command):
    one = finding(modes)
    assert (one.severity, one.subject) == ("WARNING", "GPU 0")
    assert one.message.startswith(message)
    assert command in one.remedy.partition("#")[0]


@pytest.mark.parametrize("name", ["Tesla T4", "NVIDIA A10", "NVIDIA L4", "NVIDIA L40S", "Tesla V100-SXM2-32GB"])
def test_it_may_be_off_on_purpose(name):
    one = finding([0, 0], Name=name, Brand=2 if name.startswith("Tesla") else 14)
    assert one.severity == "WARNING"
    assert "on purpose" in one.remedy


@pytest.mark.parametrize(
    ("name", "brand"),
    [
        ("NVIDIA RTX A6000", 13),
        ("NVIDIA RTX A6000", 14),
        ("Quadro RTX 6000", 12),
        ("NVIDIA GeForce RTX 4090", 15),
        ("NVIDIA TITAN V", 6),
    ],
)
def test_workstation_and_consumer_cards_have_it_off(name, brand):
    assert finding([0, 0], Name=name, Brand=brand).severity == "NOT_APPLICABLE"


def test_a_card_that_was_shipped_with_it_off():
    one = finding([0, 0], Name="Tesla M60", Brand=2, DefaultEccMode=[0])
    assert (one.severity, "as this card was shipped" in one.message) == ("NOT_APPLICABLE", True)


@pytest.mark.parametrize("default", [NO, {"unreadable": "NVML: Unknown Error"}, [1]])
def test_a_data_centre_card_counts_as_shipped_with_it_on(default):
    assert finding([0, 0], DefaultEccMode=default).severity == "WARNING"


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ({"Name": "NVIDIA GeForce RTX 3090", "Brand": 15}, "consumer"),
        ({"Name": "NVIDIA T1000", "Brand": 1}, "no ECC"),
        ({"VirtualizationMode": 2}, "vGPU"),
    ],
)
def test_cards_without_ecc_are_named(kind, word):
    one = finding(NO, **kind)
    assert (one.severity, word in one.message) == ("NOT_APPLICABLE", True)


@pytest.mark.parametrize("answer", [NO, {"unreadable": "NVML: Unknown Error"}, [1], None])
def test_unread_is_unknown(answer):
    assert finding(answer).severity == "UNKNOWN"

"""NCCL's variables that were left set."""

import pytest
from recorded import RecordedHost, found

from gputune.checks import nccl_variables
from gputune.host import Unreadable

EIGHT = "nvidia-h200-x8"
INFINIBAND = {"/dev/infiniband/uverbs0": ""}


def judged(environ, machine=EIGHT, files=None, **more):
    return [(one.severity, one.subject) for one in found(nccl_variables, machine, environ=environ, files=files, **more)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_P2P_DISABLE", " 01"),
        ("NCCL_P2P_DISABLE", "0x1"),
        ("NCCL_P2P_LEVEL", "LOC"),
        ("NCCL_P2P_LEVEL", "0"),
        ("NCCL_SHM_DISABLE", "1"),
        ("NCCL_IB_DISABLE", "1"),
        ("NCCL_NET", "Socket"),
    ],
)
def test_a_path_that_is_switched_off_is_a_warning(name, value):
    [one] = found(nccl_variables, EIGHT, environ={name: value}, files=INFINIBAND)
    assert (one.severity, one.subject) == ("WARNING", name)
    assert one.message.startswith(f"{name}={value} ")
    assert one.remedy.startswith(f"unset {name}  # ")


def test_each_is_named():
    names = ["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"]
    assert judged(dict.fromkeys(names, "1"), files=INFINIBAND) == [("WARNING", name) for name in names]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_P2P_DISABLE", "0"),
        ("NCCL_P2P_DISABLE", ""),
        ("NCCL_P2P_DISABLE", "true"),
        ("NCCL_SHM_DISABLE", "00"),
        ("NCCL_IB_DISABLE", "0x0"),
        ("NCCL_NET", "IB"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_NVLS_ENABLE", "0"),
        ("NCCL_DEBUG", "INFO"),
    ],
)
def test_what_switches_nothing_off(name, value):
    assert judged({name: value}, files=INFINIBAND) == [("OK", None)]


@pytest.mark.parametrize("name", ["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"])
def test_one_gpu_has_nobody_to_talk_to(name):
    assert judged({name: "1"}, "nvidia-h200-x1") == [("NOT_APPLICABLE", name)]


def test_infiniband_matters_to_one_gpu_too():
    assert judged({"NCCL_IB_DISABLE": "1"}, "nvidia-h200-x1", INFINIBAND) == [("WARNING", "NCCL_IB_DISABLE")]


@pytest.mark.parametrize(("environ", "files"), [({}, None), ({"FI_PROVIDER": "efa"}, INFINIBAND)])
def test_without_infiniband_it_is_harmless(environ, files):
    assert judged(environ | {"NCCL_IB_DISABLE": "1"}, files=files) == [("NOT_APPLICABLE", "NCCL_IB_DISABLE")]


def desktop(linked):
    host = RecordedHost(EIGHT)
    links = {"NvLinkState:0": 1} if linked else {"NvLinkState:0": {"unreadable": "NVML: Not Supported"}}
    devices = [{**device, "Brand": 15, **links} for device in host.nvml_answers["devices"]]
    return {**host.nvml_answers, "devices": devices}


@pytest.mark.parametrize(("linked", "severity"), [(False, "NOT_APPLICABLE"), (True, "WARNING")])
def test_desktop_gpus_have_a_direct_path_only_by_nvlink(linked, severity):
    assert judged({"NCCL_P2P_DISABLE": "1"}, nvml=desktop(linked)) == [(severity, "NCCL_P2P_DISABLE")]


def test_on_gpus_that_nobody_describes():
    blind = {"nvml": Unreadable("no NVML"), "torch": {"devices": []}}
    assert judged({"NCCL_P2P_DISABLE": "1"}, **blind) == [("UNKNOWN", None)]
    assert judged({"NCCL_P2P_DISABLE": "1"}, "cpu-only") == [("NOT_APPLICABLE", None)]

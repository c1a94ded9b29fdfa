"""A libcuda on LD_LIBRARY_PATH that is not the driver's."""

import pytest
from recorded import found

from gputune.checks import library_path
from gputune.host import Unreadable

STUBS, COMPAT, OWN = "/usr/local/cuda/lib64/stubs", "/usr/local/cuda/compat", "/usr/lib/driver"
FAILED = {"devices": None, "gaps": {"devices": "RuntimeError: Error 803: unsupported combination"}}
GEFORCE = {"Name": "NVIDIA GeForce RTX 4090", "Brand": 15}
FILES = {
    f"{STUBS}/libcuda.so": "",
    f"{COMPAT}/libcuda.so.1": "",
    f"{OWN}/libcuda.so.1": "",
    f"{OWN}/libcuda.so.580.159.04": "",
    "/opt/other/libz.so": "",
}


def finding(*folders, release="600.10.01", torch=None, machine="nvidia-h200-x1", **more):
    files = FILES | {f"{COMPAT}/libcuda.so.{release}": ""} if release else FILES
    [one] = found(
        library_path, machine, environ={"LD_LIBRARY_PATH": ":".join(folders)}, files=files, torch=torch, **more
    )
    return one


@pytest.mark.parametrize(
    ("torch", "severity"),
    [
        (None, "WARNING"),
        (FAILED, "ERROR"),
        ({"devices": []}, "ERROR"),
        (Unreadable("not installed"), "WARNING"),
        ({"cuda": None, "devices": None}, "WARNING"),
    ],
)
def test_a_stub(torch, severity):
    one = finding(STUBS, torch=torch)
    assert (one.severity, one.subject) == (severity, "LD_LIBRARY_PATH")
    assert STUBS in one.message
    assert one.remedy.startswith("unset LD_LIBRARY_PATH  # ")


def test_the_remedy_keeps_the_other_folders():
    one = finding("/opt/other", f"{STUBS}/", "/opt/a b")
    assert one.remedy.startswith("export LD_LIBRARY_PATH='/opt/other:/opt/a b'  # ")


@pytest.mark.parametrize("release", ["580.95.05", "580.65.06", "535.104.05"])
@pytest.mark.parametrize(("torch", "severity"), [(None, "WARNING"), (FAILED, "ERROR")])
def test_a_compatibility_package_no_newer_than_the_driver(release, torch, severity):
    one = finding(COMPAT, release=release, torch=torch)
    assert (one.severity, "not newer than the driver" in one.message) == (severity, True)


@pytest.mark.parametrize(("torch", "severity"), [(None, "WARNING"), (FAILED, "ERROR")])
def test_a_compatibility_package_on_a_consumer_gpu(torch, severity):
    one = finding(COMPAT, torch=torch, gpu=GEFORCE)
    assert (one.severity, "consumer" in one.message) == (severity, True)


@pytest.mark.parametrize("release", ["600.10.01", None])
def test_a_compatibility_package_that_works(release):
    assert finding(COMPAT, release=release).severity == "OK"


def test_one_with_which_torch_can_use_no_gpu():
    assert finding(COMPAT, torch=FAILED).severity == "ERROR"


@pytest.mark.parametrize("folders", [[], ["/opt/other"], ["/nonexistent/stubs"], [OWN], [OWN, STUBS, COMPAT]])
def test_what_is_never_loaded_is_no_fault(folders):
    assert finding(*folders, torch=FAILED).severity == "OK"


@pytest.mark.parametrize("folder", ["/usr/local/cuda/compatible", "/opt/stubs.d"])
def test_a_folder_with_another_name_is_not_taken_for_one(folder):
    one = found(library_path, environ={"LD_LIBRARY_PATH": folder}, files={f"{folder}/libcuda.so.1": ""})
    assert [finding.severity for finding in one] == ["OK"]


def test_fabric_manager_and_hidden_gpus_are_other_reasons():
    waits = {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}
    assert finding(COMPAT, torch=waits).severity == "OK"
    hides = {"LD_LIBRARY_PATH": STUBS, "CUDA_VISIBLE_DEVICES": ""}
    assert [one.severity for one in found(library_path, environ=hides, files=FILES, torch={"devices": []})] == [
        "WARNING"
    ]


def test_where_nothing_could_be_driven():
    assert finding(STUBS, machine="cpu-only").severity == "NOT_APPLICABLE"

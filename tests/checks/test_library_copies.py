import pytest
from recorded import RecordedHost, found

from gputune.checks import library_copies

OWN = RecordedHost().torch["loaded"]
CUDNN = next(path.rpartition("/")[0] for path in OWN if "libcudnn" in path)
OTHER = "/opt/cuda/lib64"


def findings(*names, loaded=OWN, bundled=OWN, path=OTHER):
    files, torch = {f"{OTHER}/{name}": "" for name in names}, {"loaded": list(loaded), "bundled": list(bundled)}
    return found(library_copies, files=files, environ={"LD_LIBRARY_PATH": path}, torch=torch)


def test_torch_s_own_alone():
    [one] = findings()
    assert one.severity == "OK"
    assert one.message == "one copy each of libcublas.so.13, libcublasLt.so.13, libcudnn.so.9"


@pytest.mark.parametrize("path", [OTHER, f"{OTHER}/", f"/nowhere:{OTHER}", f":{OTHER}:"])
def test_a_copy_that_ld_library_path_offers(path):
    [one] = findings("libcudnn.so.9", path=path)
    assert (one.severity, one.subject) == ("WARNING", "libcudnn.so.9")
    assert one.message == f"LD_LIBRARY_PATH has a libcudnn.so.9 other than torch's, in {OTHER}"
    left = "export LD_LIBRARY_PATH=/nowhere" if "/nowhere" in path else "unset LD_LIBRARY_PATH"
    assert one.remedy.startswith(f"{left}  # ")


def test_each_library_is_named():
    assert [one.subject for one in findings("libcublas.so.13", "libcudnn.so.9")] == ["libcublas.so.13", "libcudnn.so.9"]


@pytest.mark.parametrize(
    "name", ["libcudnn.so.8", "libcudnn.so", "libcudnn.so.9.1.0", "libcudart.so.13", "libcudnn_ops.so.9"]
)
def test_what_torch_would_not_load_by_that_name(name):
    assert [one.severity for one in findings(name)] == ["OK"]


def test_a_copy_in_a_folder_that_is_not_searched():
    assert [one.severity for one in findings("libcudnn.so.9", path="/elsewhere")] == ["OK"]


@pytest.mark.parametrize("file", ["libcudnn.so.9", "libcudnn.so.9.1.0"])
def test_another_copy_that_torch_loaded_instead_of_its_own(file):
    [one] = findings(file, loaded=[f"{OTHER}/{file}"])
    assert (one.severity, one.subject) == ("WARNING", "libcudnn.so.9")
    assert one.message == f"torch loaded libcudnn.so.9 from {OTHER}, not its own from {CUDNN}"
    assert one.remedy.startswith("unset LD_LIBRARY_PATH  # ")


@pytest.mark.parametrize("bundled", [[], [path for path in OWN if path.rpartition("/")[0] != CUDNN]])
def test_a_torch_without_a_copy_of_its_own_loads_the_one_that_is_searched(bundled):
    assert [one.severity for one in findings("libcudnn.so.9", loaded=[f"{OTHER}/libcudnn.so.9"], bundled=bundled)] == [
        "OK"
    ]


@pytest.mark.parametrize("bundled", [OWN, []])
def test_two_copies_in_one_process(bundled):
    [one] = findings(loaded=[*OWN, "/usr/lib/libcudnn.so.9.1.0"], bundled=bundled)
    assert (one.severity, one.subject) == ("WARNING", "libcudnn.so.9")
    assert one.message == f"torch loaded libcudnn.so.9 twice: from {CUDNN} and /usr/lib"
    assert one.remedy.startswith("LD_DEBUG=libs /opt/torch/.venv/bin/python3 -c 'import torch' 2>&1 | grep ")


def test_one_copy_under_two_names_in_one_folder():
    assert [one.severity for one in findings(loaded=[*OWN, f"{CUDNN}/libcudnn.so.9.19.0"])] == ["OK"]


def test_libraries_of_which_none_was_seen_are_unknown():
    assert [one.severity for one in findings(loaded=[])] == ["UNKNOWN"]


def test_every_folder_with_a_copy_is_taken_out_at_once_and_no_other():
    files = {f"{OTHER}/libcudnn.so.9": "", "/opt/more/libcublas.so.13": ""}
    environ = {
        "LD_LIBRARY_PATH": f"/opt/mpi/lib:{OTHER}:/opt/more",
        "LD_PRELOAD": f"/usr/lib/libjemalloc.so.2 {OTHER}/libcudnn.so.9",
    }
    for one in found(library_copies, files=files, environ=environ, torch={"loaded": OWN, "bundled": OWN}):
        assert one.remedy.startswith(
            "export LD_LIBRARY_PATH=/opt/mpi/lib && export LD_PRELOAD=/usr/lib/libjemalloc.so.2  # "
        )

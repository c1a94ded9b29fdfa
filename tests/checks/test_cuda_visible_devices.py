import pytest
from recorded import RecordedHost, facts_of, found

from gputune.checks import cuda_visible_devices
from gputune.checks.cuda_visible_devices import hidden
from gputune.host import Unreadable

VARIABLE = "CUDA_VISIBLE_DEVICES"
EIGHT = [gpu.uuid for gpu in facts_of("nvidia-h200-x8").gpus]


def finding(value, machine="nvidia-h200-x8", **overrides):
    [only] = found(cuda_visible_devices, machine, environ={VARIABLE: value}, **overrides)
    return only


def test_not_set_is_fine():
    assert finding(None).severity == "OK"


@pytest.mark.parametrize("value", ["", " ", "-1", "NoDevFiles"])
def test_a_value_that_hides_every_gpu_is_a_warning(value):
    warned = finding(value)
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert f"{value!r} hides every GPU" in warned.message
    assert warned.remedy == f"unset {VARIABLE}"


@pytest.mark.parametrize(
    ("value", "told", "left"),
    [
        ("0,8,1", "8 names no GPU here, so only 1 of 8", "0"),
        ("6,7,-1,0", "-1 names no GPU here, so only 2 of 8", "6,7"),
        ("1,,2", "an empty entry names no GPU here, so only 1 of 8", "1"),
        ("all", "all names no GPU here, so only 0 of 8", "0,1,2,3,4,5,6,7"),
        ("2,2", "2 names one GPU twice, so only 0 of 8", "0,1,2,3,4,5,6,7"),
        ("GPU-00000000", "GPU-00000000 names no GPU here, so only 0 of 8", "0,1,2,3,4,5,6,7"),
    ],
)
def test_a_list_that_cuda_does_not_take_whole_is_a_warning(value, told, left):
    warned = finding(value)
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert f"{value!r}: {told} GPUs are visible" in warned.message
    assert warned.remedy == f"export {VARIABLE}={left}"


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("0", 1),
        ("3,1", 2),
        ("0, 7", 2),
        ("0,", 1),
        ("0,1,2,3,4,5,6,7", 8),
        (EIGHT[5], 1),
        (f"{EIGHT[5]},{EIGHT[0][:12]}", 2),
    ],
)
def test_a_list_of_gpus_that_are_here_is_fine(value, count):
    fine = finding(value, torch={"devices": RecordedHost("nvidia-h200-x8").torch["devices"][:count]})
    assert (fine.severity, fine.message) == ("OK", f"{VARIABLE}={value!r}: {count} of 8 GPUs are visible")


def test_torch_does_not_know_the_capitals_that_cuda_knows():
    warned = finding(f"GPU-{EIGHT[5][4:].upper()}", torch={"devices": []})
    assert warned.severity == "WARNING"
    assert "names 1 of 8 GPUs, and torch.cuda.device_count() is 0" in warned.message
    assert warned.remedy == f"export {VARIABLE}={EIGHT[5]}"


BLIND = {
    "NVML is missing": {"nvml": Unreadable("NVML: Not Found")},
    "a UUID is not read": {"gpu": {"UUID": {"unreadable": "NVML: Unknown Error"}}},
}


@pytest.mark.parametrize("blind", BLIND)
def test_where_nvml_does_not_tell_which_gpus_there_are_torch_s_count_has_to_do(blind):
    fine = finding("0", "nvidia-h200-x1", **BLIND[blind])
    assert (fine.severity, fine.message) == ("OK", f"{VARIABLE}='0': torch sees 1")


@pytest.mark.parametrize("blind", BLIND)
def test_where_torch_sees_none_the_list_is_wrong(blind):
    warned = finding("7", "nvidia-h200-x1", torch={"devices": []}, **BLIND[blind])
    assert (warned.severity, warned.message) == ("WARNING", f"{VARIABLE}='7': torch sees no GPU")
    assert (warned.remedy, warned.subject) == (f"unset {VARIABLE}", VARIABLE)


@pytest.mark.parametrize("blind", BLIND)
def test_where_torch_tells_nothing_either_it_is_unknown(blind):
    unread = finding("0", "nvidia-h200-x1", torch=Unreadable("no answer"), **BLIND[blind])
    assert unread.severity == "UNKNOWN"
    assert "neither NVML nor torch says" in unread.message


def test_a_slice_of_a_gpu_is_not_among_nvml_s_gpus():
    devices = [{**RecordedHost().torch["devices"][0], "uuid": "5a5a5a5a-0000-0000-0000-000000000000"}]
    assert finding("MIG-5a5a5a5a-0000", "nvidia-h200-x1", torch={"devices": devices}).severity == "OK"
    assert finding("MIG-5a5a5a5a-0000", "nvidia-h200-x1", torch={"devices": []}).severity == "WARNING"


@pytest.mark.parametrize("value", ["", "-1"])
def test_nothing_is_hidden_where_nothing_is(value):
    assert finding(value, "cpu-only").severity == "NOT_APPLICABLE"


def test_a_gpu_that_is_named_where_there_is_none_is_a_warning():
    warned = finding("0", "cpu-only")
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert "'0' names a GPU, but there is none" in warned.message
    assert f"unset {VARIABLE}" in warned.remedy


@pytest.mark.parametrize(
    ("value", "none_left"),
    [
        (None, False), ("0,99", False), ("GPU-f5f3a5e9", False), ("MIG-5a5a5a5a", False),
        ("", True), (" ", True), ("NoDevFiles", True), ("99,0", True), ("0,0", True),
    ],
)  # fmt: skip
def test_hidden_means_that_no_gpu_is_left(value, none_left):
    assert hidden(facts_of(environ={VARIABLE: value})) is none_left


@pytest.mark.parametrize(("value", "none_left"), [("99", False), ("-1", True)])
def test_what_a_number_leaves_is_not_known_without_nvml(value, none_left):
    assert hidden(facts_of(nvml=Unreadable("NVML: Not Found"), environ={VARIABLE: value})) is none_left


def test_a_torch_for_amd_s_gpus_heeds_it_in_its_own_way():
    [only] = found(cuda_visible_devices, "cpu-only", torch={"hip": "6.4"}, environ={"CUDA_VISIBLE_DEVICES": "0"})
    assert only.severity == "NOT_APPLICABLE"


@pytest.mark.parametrize("value", ["", "all"])
@pytest.mark.parametrize(
    ("overrides", "left"),
    [
        ({"gpu": {"ComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": None}]}, "gpu_index": 5}, "0,1,2,3,4,6,7"),
        ({"slurm": {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2-3"}}, "2,3"),
    ],
)
def test_the_remedy_takes_no_gpu_of_others(value, overrides, left):
    environ = {VARIABLE: value, **overrides.get("slurm", {})}
    [warned] = found(
        cuda_visible_devices,
        "nvidia-h200-x8",
        environ=environ,
        **{name: given for name, given in overrides.items() if name != "slurm"},
    )
    assert warned.remedy.startswith(f"export {VARIABLE}={left}")


@pytest.mark.parametrize(
    ("value", "ignored", "meant"),
    [
        ("0;1", "0;1", "0,1"),
        ("0 1", "0 1", "0,1"),
        ("0:1", "0:1", "0,1"),
        ("0,1;2", "1;2", "0,1,2"),
        ("5;99", "5;99", "5"),
    ],
)
@pytest.mark.parametrize("blind", [None, *BLIND])
def test_only_commas_separate(value, ignored, meant, blind):
    warned = finding(value, **BLIND.get(blind, {}))
    assert (warned.severity, warned.subject) == ("WARNING", VARIABLE)
    assert f"CUDA ignores what follows the number in {ignored!r}" in warned.message
    assert warned.remedy == f"export {VARIABLE}={meant}"

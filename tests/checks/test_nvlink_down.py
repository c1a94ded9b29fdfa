import pytest
from recorded import NOT_SUPPORTED, RecordedHost, found

from gputune.checks import nvlink_down

EIGHT, UNSUPPORTED = "nvidia-h200-x8", {"NvLinkState:0": {"unreadable": NOT_SUPPORTED}}
SWITCH = {"NvLinkRemoteDeviceType:0": 2}
BRIDGED = {"NvLinkRemoteDeviceType:0": 0, "GpuFabricInfoV": {"state": 0, "status": 0, "healthMask": 0}}


def on_all(answers):
    nvml = RecordedHost(EIGHT).nvml_answers
    return {**nvml, "devices": [device | answers for device in nvml["devices"]]}


def down(*links):
    return {f"NvLinkState:{link}": 0 for link in links}


def only(count):
    return {f"NvLinkState:{count}": {"unreadable": "NVML: Invalid Argument"}}


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (down(7), "17 NVLinks are up, 18 on other GPUs (down: 7)"),
        (down(0, 17), "16 NVLinks are up, 18 on other GPUs (down: 0, 17)"),
        (down(*range(18)), "0 NVLinks are up, 18 on other GPUs"),
    ],
)
def test_a_gpu_with_fewer_links_than_the_others(links, message):
    findings = found(nvlink_down, EIGHT, gpu=links, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "ERROR"] == ["GPU 3"]
    assert [one.severity for one in findings].count("OK") == 7
    assert findings[3].message.startswith(message)
    assert "nvidia-smi nvlink -s" in findings[3].remedy
    assert "--gpu-reset" in findings[3].remedy


def test_a_gpu_that_tells_of_fewer_links_than_the_others_is_unknown():
    findings = found(nvlink_down, EIGHT, gpu=only(12), gpu_index=3)
    assert [one.subject for one in findings if one.severity == "UNKNOWN"] == ["GPU 3"]
    assert findings[3].message == "NVML describes 12 of its NVLinks, and 18 of other GPUs"


@pytest.mark.parametrize(("links", "up"), [([7], 17), (range(18), 0)])
def test_links_to_a_switch_that_are_down_on_all_alike(links, up):
    findings = found(nvlink_down, EIGHT, nvml=on_all(down(*links)))
    assert {one.severity for one in findings} == {"WARNING"}
    assert findings[0].message.startswith(f"{up} of 18 NVLinks are up, as on the other GPUs (down: {links[0]}")
    assert "--gpu-reset" in findings[0].remedy


def test_the_links_of_a_gpu_alone_lead_to_a_switch_too():
    [one] = found(nvlink_down, gpu=dict.fromkeys((f"NvLinkState:{link}" for link in range(18)), 1) | down(7) | SWITCH)
    assert (one.severity, one.message) == ("WARNING", "17 of 18 NVLinks are up (down: 7)")


@pytest.mark.parametrize(
    ("links", "message"),
    [(range(18), "its NVLinks are not connected"), ([7], "17 NVLinks are up, and no other GPU has more")],
)
def test_bridges_need_not_use_all_links(links, message):
    findings = found(nvlink_down, EIGHT, nvml=on_all(BRIDGED | down(*links)))
    assert {(one.severity, one.message) for one in findings} == {("OK", message)}


@pytest.mark.parametrize(("links", "severity"), [(range(18), "OK"), (range(17), "ERROR"), ([7], "ERROR")])
def test_among_bridged_gpus_one_may_have_no_bridge_but_not_half_a_one(links, severity):
    findings = found(nvlink_down, EIGHT, nvml=on_all(BRIDGED), gpu=down(*links), gpu_index=3)
    assert findings[3].severity == severity
    assert [one.severity for one in findings].count("OK") == 7 + (severity == "OK")


def test_one_switch_is_a_sign_for_all_alike():
    nvml = on_all(BRIDGED)
    nvml["devices"][0] |= SWITCH
    assert found(nvlink_down, EIGHT, nvml=nvml, gpu=down(*range(18)), gpu_index=3)[3].severity == "ERROR"


@pytest.mark.parametrize("links", [down(), down(7), down(*range(18))])
def test_mig_does_without_nvlink(links):
    one = found(nvlink_down, EIGHT, gpu={"MigMode": [1, 1], **links}, gpu_index=3)[3]
    assert (one.severity, one.message) == ("NOT_APPLICABLE", "MIG is on, and MIG slices do not use NVLink")


def test_a_gpu_of_another_kind_has_another_number_of_links():
    findings = found(nvlink_down, EIGHT, gpu={"Name": "NVIDIA A100-SXM4-80GB", **only(12)}, gpu_index=3)
    assert {one.severity for one in findings} == {"OK"}


def test_a_gpu_alone_that_has_no_nvlink():
    [one] = found(nvlink_down)
    assert (one.severity, one.message) == ("NOT_APPLICABLE", "there is no other GPU to be linked to")


def test_no_gpu_has_nvlink():
    findings = found(nvlink_down, EIGHT, nvml=on_all(UNSUPPORTED))
    assert {(one.severity, one.message) for one in findings} == {("NOT_APPLICABLE", "no NVIDIA H200 here has NVLink")}


def test_a_kind_of_gpu_that_has_no_nvlink_beside_others_that_have():
    findings = found(nvlink_down, EIGHT, gpu={"Name": "NVIDIA L40S", **UNSUPPORTED}, gpu_index=3)
    assert (findings[3].severity, findings[3].message) == ("NOT_APPLICABLE", "no NVIDIA L40S here has NVLink")


def test_a_gpu_that_tells_none_where_the_others_have_some_is_unknown():
    findings = found(nvlink_down, EIGHT, gpu=UNSUPPORTED, gpu_index=3)
    assert [one.subject for one in findings if one.severity == "UNKNOWN"] == ["GPU 3"]


@pytest.mark.parametrize("machine", ["nvidia-h200-x1", EIGHT])
@pytest.mark.parametrize("answer", [{"unreadable": "NVML: Unknown Error"}, 2])
def test_what_is_not_read_is_unknown(machine, answer):
    first = found(nvlink_down, machine, gpu={"NvLinkState:0": answer})[0]
    assert first.severity == "UNKNOWN"
    assert "NVML" in first.message


def test_a_link_in_the_middle_that_is_not_read_is_unknown():
    first = found(nvlink_down, EIGHT, gpu={"NvLinkState:9": {"unreadable": "NVML: Unknown Error"}})[0]
    assert (first.severity, first.subject) == ("UNKNOWN", "GPU 0")

"""Links between GPUs: NVLinks that are down, and the NVSwitch fabric."""

from recorded import EIGHT, NOT_SUPPORTED, UNREAD, UNSUPPORTED, RecordedHost, found, says, table

from gputune.checks import nvlink_down
from gputune.host import Unreadable

NO_LINK = {"NvLinkState:0": UNSUPPORTED}
SWITCH = {"NvLinkRemoteDeviceType:0": 2}
BRIDGED = {"NvLinkRemoteDeviceType:0": 0, "GpuFabricInfoV": {"state": 0, "status": 0, "healthMask": 0}}
EVERY = [f"GPU {index}" for index in range(8)]


def on_all(answers):
    nvml = RecordedHost(EIGHT).nvml_answers
    return {**nvml, "devices": [device | answers for device in nvml["devices"]]}


def down(*links):
    return {f"NvLinkState:{link}": 0 for link in links}


def only(count):
    return {f"NvLinkState:{count}": {"unreadable": "NVML: Invalid Argument"}}


def of_3(severity, gpu, message="", remedy="", **more):
    return says(severity, message, remedy, of=3, gpu=gpu, **more)


def alike(severity, nvml, message, remedy=""):
    return says([f"{severity} {gpu}" for gpu in EVERY], message, remedy, machine=EIGHT, nvml=on_all(nvml))


test_nvlink_down = table(
    "nvlink_down",
    {
        told: of_3("ERROR", links, told, ("nvidia-smi nvlink -s", "--gpu-reset"))
        for links, told in [
            (down(7), "^17 NVLinks are up, 18 on other GPUs (down: 7)"),
            (down(0, 17), "^16 NVLinks are up, 18 on other GPUs (down: 0, 17)"),
            (down(*range(18)), "^0 NVLinks are up, 18 on other GPUs"),
        ]
    },
    {
        f"{up} of 18 to a switch": alike(
            "WARNING",
            down(*links),
            f"^{up} of 18 NVLinks are up, as on the other GPUs (down: {links[0]}",
            "--gpu-reset",
        )
        for links, up in [([7], 17), (range(18), 0)]
    },
    {
        "no bridge": alike("OK", BRIDGED | down(*range(18)), "=its NVLinks are not connected"),
        "a bridge of 17": alike("OK", BRIDGED | down(7), "=17 NVLinks are up, and no other GPU has more"),
        "one without a bridge": of_3("OK", down(*range(18)), nvml=on_all(BRIDGED)),
        "half a bridge": of_3("ERROR", down(*range(17)), nvml=on_all(BRIDGED)),
        "a bridge with a fault": of_3("ERROR", down(7), nvml=on_all(BRIDGED)),
        "not told by all": of_3("UNKNOWN", only(12), "=NVML describes 12 of its NVLinks, and 18 of other GPUs"),
        "alone on a switch": says(
            "WARNING",
            "=17 of 18 NVLinks are up (down: 7)",
            gpu=dict.fromkeys((f"NvLinkState:{link}" for link in range(18)), 1) | down(7) | SWITCH,
        ),
        "another kind": of_3("OK", {"Name": "NVIDIA A100-SXM4-80GB", **only(12)}),
        "alone": says("NOT_APPLICABLE", "=there is no other GPU to be linked to"),
        "none has any": alike("NOT_APPLICABLE", NO_LINK, "=no NVIDIA H200 here has NVLink"),
        "a kind without": of_3("NOT_APPLICABLE", {"Name": "NVIDIA L40S", **NO_LINK}, "=no NVIDIA L40S here has NVLink"),
        "one that tells none": of_3("UNKNOWN", NO_LINK),
        "a link in the middle is not read": of_3("UNKNOWN", {"NvLinkState:9": UNREAD}),
    },
    {
        f"MIG does without: {len(links)} down": of_3(
            "NOT_APPLICABLE", {"MigMode": [1, 1], **links}, "=MIG is on, and MIG slices do not use NVLink"
        )
        for links in (down(), down(7), down(*range(18)))
    },
    {f"not read: {answer}": of_3("UNKNOWN", {"NvLinkState:0": answer}, "NVML") for answer in (UNREAD, 2)},
    {f"not read, alone: {answer}": says("UNKNOWN", "NVML", gpu={"NvLinkState:0": answer}) for answer in (UNREAD, 2)},
)


def test_one_switch_is_a_sign_for_all_alike():
    nvml = on_all(BRIDGED)
    nvml["devices"][0] |= SWITCH
    assert found(nvlink_down, EIGHT, nvml=nvml, gpu=down(*range(18)), gpu_index=3)[3].severity == "ERROR"


STATE, NO_STATE = "GpuFabricInfoV", {"GpuFabricInfoV": UNSUPPORTED}
NOT_READY = {"devices": None, "gaps": {"devices": "RuntimeError: Error 802: system not yet initialized"}}
RESTART = "sudo systemctl restart nvidia-fabricmanager && nvidia-smi -q -i 00000000:00:09.0 "
DRAIN = "on the host, as root; ends its jobs; drain it first"


def state(number, status=0, mask=0):
    return {STATE: {"state": number, "status": status, "healthMask": mask}}


REPORTS = {
    0b01: ("WARNING", "degraded bandwidth"),
    0b01_01_01_01: ("WARNING", "degraded bandwidth, route recovery, unhealthy route, access timeout recovery"),
    0b11: ("WARNING", "degraded bandwidth (3)"),
    2 << 14: ("WARNING", "a disconnected fabric manager"),
    9 << 8: ("WARNING", "an incorrect configuration (9)"),
    1 << 18: ("WARNING", "faults of unknown meaning (0x40000)"),
    2 << 8: ("ERROR", "a wrong system GUID"),
    3 << 8: ("ERROR", "a wrong chassis serial number"),
    4 << 8: ("ERROR", "no partition"),
    5 << 8: ("ERROR", "insufficient NVLinks"),
    6 << 8: ("ERROR", "incompatible GPU firmware"),
    7 << 8: ("ERROR", "an invalid location"),
    8 << 8: ("ERROR", "an invalid GPU state"),
    2 << 12: ("ERROR", "no assigned partition"),
    2 << 14 | 5 << 8 | 1: ("ERROR", "degraded bandwidth, insufficient NVLinks, a disconnected fabric manager"),
}
"""By the fabric's health mask: a GPU that the fabric refuses is an error."""
test_fabric_manager = table(
    "fabric_manager",
    {
        f"{told}, {answer}": of_3(
            "ERROR",
            answer,
            f"=its registration with the NVSwitch fabric {told}",
            (RESTART, DRAIN, "exactly the driver's version: 580.159.04"),
        )
        for answer, told in [
            (state(1), "is not started"),
            (state(2), "is in progress"),
            (state(3, status=999), "failed with NVML error 999"),
            (state(3, status=999, mask=0b01), "failed with NVML error 999"),
        ]
    },
    {
        told: of_3(severity, state(3, mask=mask), f"=the NVSwitch fabric reports {told}", (RESTART, "drain it first"))
        for mask, (severity, told) in REPORTS.items()
    },
    {
        f"nothing is wrong: {mask}": of_3("OK", state(3, mask=mask))
        for mask in (0, 1 << 8, 1 << 8 | 1 << 12 | 1 << 14 | 0b10_10_10_10, 0b10_10_10_10)
    },
    {
        "not started": of_3(
            "ERROR",
            state(1),
            "",
            f"={RESTART}| grep -A 12 Fabric  # {DRAIN}; Fabric Manager must be "
            "in exactly the driver's version: 580.159.04",
        ),
        "in progress": of_3("ERROR", state(2), "", f"^sleep 60 && {RESTART}"),
        "a driver of unknown version": of_3(
            "ERROR", state(1), "", "see nvidia-smi", nvml={**RecordedHost(EIGHT).nvml_answers, "DriverVersion": UNREAD}
        ),
        "torch waits": says(["ERROR"], "system not yet initialized", "restart nvidia-fabricmanager", torch=NOT_READY),
        "torch waits on eight": says(
            ["ERROR"], "system not yet initialized", "restart nvidia-fabricmanager", machine=EIGHT, torch=NOT_READY
        ),
        "no fabric": says(["NOT_APPLICABLE GPU 0"], "not part of an NVSwitch fabric"),
        "no GPU": says("NOT_APPLICABLE", machine="cpu-only"),
        "no GPU, torch waits": says("NOT_APPLICABLE", machine="cpu-only", torch=NOT_READY),
    },
    {
        f"no switch: {links}": of_3("NOT_APPLICABLE", NO_STATE | links, "=no link of this GPU leads to an NVSwitch")
        for links in ({"NvLinkRemoteDeviceType:0": 0}, NO_LINK)
    },
    {
        f"perhaps a switch: {call} is not read": of_3("UNKNOWN", NO_STATE | {call: UNREAD})
        for call in ("NvLinkRemoteDeviceType:0", "NvLinkState:0")
    },
    {
        name: of_3("NOT_APPLICABLE", NO_STATE | {"Architecture": number}, (name, "torch can use the GPU"))
        for number, name in {5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada"}.items()
    },
    {
        f"a newer GPU that tells no state: {number}": of_3("UNKNOWN", NO_STATE | {"Architecture": number})
        for number in (9, 10, UNREAD)
    },
    {
        f"an older GPU without torch: {torch}": of_3(
            "UNKNOWN", NO_STATE | {"Architecture": 7}, NOT_SUPPORTED, torch=torch
        )
        for torch in (Unreadable("no answer"), {"devices": []})
    },
    {
        f"not read: {answer}": of_3("UNKNOWN", answer, "NVML")
        for answer in ({STATE: UNREAD}, state(4), state(3, -1), state(3, mask=-1))
    },
)

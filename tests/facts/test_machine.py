"""All facts together, what becomes of one that cannot be read, and which machine is a Jetson board."""

from types import ModuleType

import pytest
import torch_child
from recorded import facts_of
from trees import grow

from gputune.facts.gap import Gap, Gaps
from gputune.facts.machine import NAMELESS, board_model
from gputune.facts.unimported_torch import modes
from gputune.host import Unreadable


def test_a_machine_without_a_gpu_leaves_no_gap():
    found = facts_of("cpu-only")
    assert found.gpus == ()
    assert found.gaps == ()


def test_nvml_s_absence_is_a_gap_only_beside_a_gpu():
    absent = Unreadable("NVML: Shared Library Not Found")
    assert "driver.nvml" in [gap.fact for gap in facts_of(nvml=absent).gaps]
    assert "driver.nvml" not in [gap.fact for gap in facts_of("cpu-only", nvml=absent).gaps]


def test_a_driver_that_nvml_refuses_is_a_gap_wherever_it_is():
    refused = Unreadable("NVML: Driver/library version mismatch", "version_mismatch")
    assert "driver.nvml" in [gap.fact for gap in facts_of("cpu-only", nvml=refused).gaps]


def test_a_torch_device_is_a_gpu_or_none():
    found = facts_of()
    assert found.device_gpu("cuda:0") == found.device_gpu("cuda") == found.gpus[0]
    assert found.device_gpu("cuda:1") is None
    assert found.device_gpu("cpu") is None


def failing(error):
    raise error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unreadable("/proc/cpuinfo: Permission denied"), "/proc/cpuinfo: Permission denied"),
        (KeyError("model"), "KeyError: 'model'"),
    ],
)
def test_what_cannot_be_read_is_a_gap_with_its_reason_also_by_a_reader_s_own_fault(error, reason):
    gaps = Gaps()
    assert gaps.read("cpu.model", lambda: failing(error)) is None
    assert gaps.found == [Gap(fact="cpu.model", reason=reason)]


def test_a_value_leaves_no_gap():
    gaps = Gaps()
    assert gaps.read("cpu.model", lambda: "EPYC") == "EPYC"
    assert gaps.found == []


MODEL = "/proc/device-tree/model"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({MODEL: "Raspberry Pi 5 Model B Rev 1.0\0"}, None),
        ({MODEL: "NVIDIA Jetson AGX Orin Developer Kit\0"}, "NVIDIA Jetson AGX Orin Developer Kit"),
        ({MODEL: "NVIDIA Orin Nano Developer Kit\0"}, "NVIDIA Orin Nano Developer Kit"),
        ({"/etc/nv_tegra_release": "# R36 (release), REVISION: 4.3"}, NAMELESS),
        ({"/dev/nvmap": ""}, NAMELESS),
        ({"/dev/nvhost-gpu": "", MODEL: "Some carrier board\0"}, "Some carrier board"),
    ],
)
def test_which_machine_is_a_jetson_board(tmp_path, files, found):
    assert board_model(grow(tmp_path, files)) == found


@pytest.mark.slow
def test_a_check_within_a_program_tells_its_modes_as_they_are_now() -> None:
    assert torch_child.ask("""
import warnings
import gputune
warnings.simplefilter("error")
def told():
    found = {one.check: one for one in gputune.check()}
    return [found[name].severity for name in ("anomaly_detection", "determinism", "precision_api")]
answer = [told()]
torch.autograd.set_detect_anomaly(True)
torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True
answer.append(told()[:2])
torch.autograd.set_detect_anomaly(False)
torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
answer.append(told() == answer[0])
""") == [["OK", "OK", "OK"], ["WARNING", "WARNING"], True]


def test_of_a_torch_that_is_imported_by_half_what_it_has_is_asked() -> None:
    half = ModuleType("torch")
    assert modes(half) == {}
    half.get_num_threads = lambda: 3  # type: ignore[attr-defined]
    assert modes(half) == {"threads": 3}
    half.get_num_threads = lambda: "many"  # type: ignore[attr-defined]
    assert modes(half) == {}

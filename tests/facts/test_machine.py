"""All facts together."""

from recorded import facts_of

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

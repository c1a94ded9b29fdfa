from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import torch_cuda_build
from gputune.host import Unreadable


def finding(machine="nvidia-h200-x1", **overrides):
    [found] = torch_cuda_build.check(facts_of(machine, **overrides), ())
    return found


def test_a_build_without_cuda_beside_a_gpu():
    facts = facts_of()
    facts = replace(facts, libraries=replace(facts.libraries, torch="2.13.0+cpu", cuda=None, device_count=None))
    [found] = torch_cuda_build.check(facts, ())
    assert found.severity == "ERROR"
    assert "2.13.0+cpu" in found.message
    pip = "/opt/torch/.venv/bin/python3 -m pip"
    index = "--index-url https://download.pytorch.org/whl/cu130"
    assert found.remedy.startswith(f"{pip} uninstall -y torch && {pip} install torch {index}  # ")


def test_a_device_file_is_a_gpu():
    assert finding("cpu-only", files={"/dev/nvidia0": ""}).severity == "ERROR"


def test_a_build_without_cuda_where_there_is_no_gpu():
    assert finding("cpu-only").severity == "NOT_APPLICABLE"


def test_wsl_s_device_may_be_any_maker_s():
    assert finding("cpu-only", files={"/dev/dxg": ""}).severity == "NOT_APPLICABLE"


def test_a_torch_that_did_not_answer():
    found = finding(torch=Unreadable("no answer within 120 s"))
    assert found.severity == "UNKNOWN"
    assert "no answer within 120 s" in found.message


@pytest.mark.slow
def test_a_build_with_cuda():
    assert finding().severity == "OK"

"""A profile's device is missing where files say so for certain, without a driver that may hang."""

import pytest

from gputune.host import Host
from gputune.profile import Fingerprint
from gputune.runtime.local_fingerprint import lacks_device

EPYC = "AMD EPYC 9684X"
CPUINFO = f"processor : 0\nmodel name : {EPYC}\n"


@pytest.mark.parametrize(
    ("files", "measured", "lacks"),
    [
        (["proc/cpuinfo"], Fingerprint(gpu="NVIDIA H200", cpu=EPYC), True),
        (["proc/cpuinfo", "dev/nvidia0"], Fingerprint(gpu="NVIDIA H200", cpu="another"), False),
        (["proc/cpuinfo", "dev/nvidia0"], Fingerprint(cpu=EPYC), False),
        (["proc/cpuinfo"], Fingerprint(cpu="another"), True),
        ([], Fingerprint(cpu=EPYC), False),
        (["proc/cpuinfo"], Fingerprint(), False),
    ],
    ids=["no GPU", "some GPU", "a CPU's, beside a GPU", "another CPU", "nothing can be read", "of nothing"],
)
def test_a_device_is_missing_where_files_say_so(tmp_path, files, measured, lacks):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CPUINFO)
    assert lacks_device(Host(root=tmp_path), measured) is lacks

"""Which machine is a Jetson board."""

import pytest
from trees import grow

from gputune.facts.machine import NAMELESS, board_model

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
def test_model(tmp_path, files, found):
    assert board_model(grow(tmp_path, files)) == found

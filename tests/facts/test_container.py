"""Which container this is, and which device files were put into it."""

import pytest
from recorded import facts_of
from trees import grow

from gputune.facts import container
from gputune.facts.visible_gpus import device_files


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({}, {}, None),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "/image.sif"}, "apptainer"),
        ({}, {"SINGULARITY_CONTAINER": "/image.sif"}, "apptainer"),
        ({}, {"container": "lxc"}, "lxc"),
    ],
)
def test_kind(tmp_path, files, environ, kind):
    assert container.read(grow(tmp_path, files, environ)).kind == kind


def test_only_gpus_count_as_gpu_device_files(tmp_path):
    names = ("nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "dxg", "null", "nvidia")
    host = grow(tmp_path, {f"/dev/{name}": "" for name in names})
    assert device_files(host) == ("/dev/dxg", "/dev/nvidia0", "/dev/nvidia11")


@pytest.mark.parametrize(("name", "infiniband"), [("uverbs0", True), ("rdma_cm", False)])
def test_infiniband_is_there_where_an_adapter_is(tmp_path, name, infiniband):
    assert container.read(grow(tmp_path, {f"/dev/infiniband/{name}": ""})).infiniband is infiniband


def test_a_device_file_that_this_process_may_not_open_is_another_s():
    assert facts_of("nvidia-h200-x8", denied=["/dev/nvidia0", "/dev/nvidia7"]).container.gpu_device_files == tuple(
        f"/dev/nvidia{index}" for index in range(1, 7)
    )

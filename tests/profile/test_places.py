"""Where profiles are kept, and under which name one is found again."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from making import H200, profile

from gputune.errors import MeasureError
from gputune.profile import Fingerprint, load, places
from gputune.profile.places import file_name, found, keep, shipped, user_folder


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A user's own folder, and none of the machine's."""
    monkeypatch.setattr(places, "MACHINE", (tmp_path / "var", tmp_path / "etc"))
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": "/nowhere"}


class TestUserFolder:
    @pytest.mark.parametrize(
        ("environ", "folder"),
        [
            ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/gputune"),
            ({"HOME": "/h"}, "/h/.cache/gputune"),
            ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/gputune"),
            ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/gputune"),  # ignored, as XDG says
        ],
    )  # fmt: skip
    def test_as_the_xdg_specification_has_it(self, environ: dict[str, str], folder: str) -> None:
        assert user_folder(environ) == Path(folder)

    @pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
    def test_without_a_home_there_is_none(self, environ: dict[str, str]) -> None:
        assert user_folder(environ) is None
        with pytest.raises(MeasureError, match="HOME is not set; set XDG_CACHE_HOME"):
            keep(profile(), H200, environ)


class TestName:
    def test_it_says_the_device_and_tells_the_rest_apart(self) -> None:
        assert file_name(H200).startswith("nvidia-h200-")
        assert file_name(Fingerprint(cpu="AMD EPYC 9654 (96 cores)")).startswith("amd-epyc-9654-96-cores-")
        assert file_name(Fingerprint()).startswith("unknown-")

    @pytest.mark.parametrize(
        "change", [{"torch": "2.12.0"}, {"driver": "590"}, {"cuda": "13.2"}, {"cpu": "x"}, {"gpu": "NVIDIA H100"}]
    )
    def test_another_fingerprint_has_another_name(self, change: dict[str, str]) -> None:
        assert file_name(replace(H200, **change)) != file_name(H200)

    def test_counts_and_what_only_an_imported_torch_tells_are_no_part_of_it(self) -> None:
        """A rank sees fewer CPUs and GPUs than the node's own probe did."""
        assert file_name(replace(H200, gpu_count=8, cpu_budget=2, cublas=None, cudnn=None)) == file_name(H200)

    @pytest.mark.parametrize("gpu", ["../../etc/passwd", "a/b", "x" * 300, "\x00", ""])
    def test_no_name_leaves_the_folder(self, gpu: str) -> None:
        name = file_name(replace(H200, gpu=gpu))
        assert Path(name).name == name
        assert len(name) < 100
        assert name.isprintable()


class TestCache:
    def test_what_is_kept_is_found(self, environ: dict[str, str]) -> None:
        assert found(H200, environ) is None
        path = keep(profile(), H200, environ)
        assert found(H200, environ) == (path, profile())
        assert load(path) == profile()

    def test_it_is_found_by_what_this_machine_says_of_itself_without_torch(self, environ: dict[str, str]) -> None:
        """NVML may be missing, and then the driver's version is."""
        here = replace(H200, driver=None, cublas=None, cudnn=None)
        keep(profile(), here, environ)
        assert found(here, environ)

    def test_the_folder_is_the_users_alone(self, environ: dict[str, str]) -> None:
        folder = keep(profile(), H200, environ).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_the_users_comes_before_the_machines(self, environ: dict[str, str]) -> None:
        own = keep(profile(), H200, environ)
        for folder in places.MACHINE:
            folder.mkdir()
            os.link(own, folder / own.name)
        folders = []
        while one := found(H200, environ):
            folders.append(one[0].parent)
            one[0].unlink()
        assert folders == [own.parent, *places.MACHINE]

    def test_a_place_that_cannot_be_written_is_one_line(self, environ: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("")
        with pytest.raises(MeasureError, match="set XDG_CACHE_HOME to a folder that can be written"):
            keep(profile(), H200, environ)


class TestShipped:
    @pytest.mark.slow
    def test_the_one_for_this_model_of_gpu(self) -> None:
        path = shipped(replace(H200, torch="1.0", driver="1", cpu="another"))
        assert path is not None
        assert load(path).fingerprint.gpu == "NVIDIA H200"

    @pytest.mark.parametrize("gpu", ["NVIDIA H200 NVL", "NVIDIA H20", "nvidia", None])
    def test_none_for_another(self, gpu: str | None) -> None:
        assert shipped(replace(H200, gpu=gpu)) is None

"""The programs of a profile: bounded in every way, wherever they come from, and kept when the machine is measured anew.

What is refused of a file is in `hostile_profiles.PROGRAMS`.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from making import H200, choices, profile, program, row

from gputune.errors import MeasureError
from gputune.live.models import ModelKey
from gputune.measurement import LOOKS
from gputune.profile import Program, dump, dump_json, limits, load, parse, places, with_programs
from gputune.profile.keeping import ROOM
from gputune.version import __version__

from .test_limits import maximal


def at(hour: int, entry: str = "train.py", **more: Any) -> Program:
    return program(entry, created=f"2026-11-21T{hour:02}:00:00Z", **more)


def large(entry: str = "train.py", **more: Any) -> Program:
    rows = tuple(replace(row("program", "throughput", 1.0), samples=(-1.234e-300,) * LOOKS[-1]) for _ in range(62))
    return program(entry, measurements=rows, **more)


class TestLimits:
    @pytest.mark.slow
    @pytest.mark.parametrize("write", [dump, dump_json])
    def test_the_largest_of_each_can_be_read(self, write: Any) -> None:
        most = program(
            "x" * 255,
            models=tuple(ModelKey(class_name=f"Net{number}", digest=f"{number:016x}") for number in range(32)),
            input_shapes=((1,) * 8,) * 32,
        )
        made = profile(programs=(most,) * 64)
        assert parse(write(made).encode()) == made

    @pytest.mark.parametrize("write", [dump, dump_json])
    @pytest.mark.parametrize(
        ("programs", "says"),
        [
            ((program(),) * 65, "programs: at most 64 expected, 65 given"),
            ((program(), large(settings=choices({"compile": True, "amp_dtype": "float16"}) | {
                "omp_threads": replace(choices({"omp_threads": 1})["omp_threads"], evidence=("x" * 4000,))})),
             r"programs.1: takes 3\d KiB, and 32 KiB is the most"),
        ],
    )  # fmt: skip
    def test_what_could_not_be_read_is_not_written(self, write: Any, programs: tuple[Program, ...], says: str) -> None:
        with pytest.raises(MeasureError, match=says):
            write(profile(programs=programs))

    @pytest.mark.parametrize("write", [dump, dump_json])
    def test_a_program_may_take_its_32_kib(self, write: Any) -> None:
        made = profile(programs=(large(),))
        assert len(write(made)) - len(write(profile())) > 0.9 * limits.MOST_PROGRAM_BYTES
        assert parse(write(made).encode()) == made


class TestKeeping:
    def test_the_one_created_last_comes_first(self) -> None:
        first, second = at(1, "eval.py"), at(2)
        assert with_programs(profile(programs=(first,)), [second]).programs == (second, first)

    def test_of_the_same_program_the_one_created_last_stays(self) -> None:
        old, new = at(1, input_shapes=((8,),)), at(2)
        for here, there in ((old, new), (new, old)):
            assert with_programs(profile(programs=(here,)), [there]).programs == (new,)

    @pytest.mark.parametrize(
        "other",
        [{"entry": "eval.py"}, {"world_size": 2}, {"models": (ModelKey(class_name="ResNet", digest="f" * 16),)}],
    )
    def test_of_another_program_both_stay(self, other: dict[str, Any]) -> None:
        assert len(with_programs(profile(programs=(program(),)), [program(**other)]).programs) == 2

    def test_where_there_is_no_room_the_oldest_are_left_out_and_named(self) -> None:
        told: list[str] = []
        made = with_programs(profile(), [at(hour, f"{hour}.py") for hour in range(24)], told.append)
        assert (len(made.programs), told) == (24, [])
        small = [program(f"{number}.py", created=f"{number:03}", measurements=()) for number in range(66)]
        made = with_programs(profile(), small, told.append)
        assert [one.entry for one in made.programs] == [f"{number}.py" for number in range(65, 1, -1)]
        assert told == ["no room in a profile for the oldest of its programs: 1.py, 0.py"]

    @pytest.mark.slow
    @pytest.mark.parametrize("write", [dump, dump_json])
    def test_beside_the_largest_profile_of_a_probe_there_is_room_for_them(self, write: Any) -> None:
        told: list[str] = []
        many = [large(f"{number}.py", created=f"{number:03}") for number in range(64)]
        made = with_programs(maximal(), many, told.append)
        assert len(made.programs) == ROOM // limits.program_bytes(asdict(many[0]))
        assert len(told) == 1
        assert parse(write(made).encode()) == made

    def test_an_earlier_gputune_reads_what_it_can_of_a_profile_that_it_wrote(self) -> None:
        """It would refuse programs in a file of its own version."""
        old = profile()
        assert old.gputune == "0.1.0"
        assert with_programs(old, []) == old
        assert with_programs(old, [program()]).gputune == __version__
        assert with_programs(replace(old, gputune="99.0.0"), [program()]).gputune == "99.0.0"


def test_programs_outlive_the_profile_that_is_replaced_in_a_cache(tmp_path: Path) -> None:
    new, environ = profile({"omp_threads": 8}), {"XDG_CACHE_HOME": str(tmp_path)}
    places.keep(profile(programs=(program(),)), H200, environ)
    path = places.keep(new, H200, environ)
    assert load(path).programs == (program(),)
    assert load(path).settings == new.settings


def test_a_profile_without_programs_has_none() -> None:
    assert parse(dump(profile()).encode()).programs == ()

"""Matmuls of the user's own: how a file of them is read, and what padding is tried."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded import on_cpu

from gputune.bench_process import MatmulShape
from gputune.benches import matmul_shapes
from gputune.benches.matmul_shapes import DTYPES, LARGEST, MOST_SHAPES, variants
from gputune.errors import UsageError
from gputune.facts.gap import Gap

sizes = st.integers(1, LARGEST)
shapes = st.builds(MatmulShape, m=sizes, n=sizes, k=sizes, dtype=st.sampled_from(DTYPES))


def read(text: str | bytes) -> tuple[MatmulShape, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shapes.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return matmul_shapes.read(path)


def read_or_error(text: str) -> tuple[tuple[MatmulShape, ...], UsageError | None]:
    try:
        return read(text), None
    except UsageError as error:
        return (), error


def refusal(text: str | bytes) -> str:
    with pytest.raises(UsageError) as refused:
        read(text)
    assert refused.value.remedy
    assert "\n" not in str(refused.value)
    return str(refused.value)


class TestReading:
    def test_a_line_is_a_matmul_with_or_without_its_dtype(self) -> None:
        assert read("# mine\n512 50257 4096  # the vocabulary\n\n\t8 8 8 tf32\r\n") == (
            MatmulShape(m=512, n=50257, k=4096, dtype="bfloat16"),
            MatmulShape(m=8, n=8, k=8, dtype="tf32"),
        )

    @pytest.mark.slow
    @given(st.lists(shapes, min_size=1, max_size=MOST_SHAPES))
    def test_what_is_written_is_read(self, wanted: list[MatmulShape]) -> None:
        assert read("\n".join(f"{one.m} {one.n} {one.k} {one.dtype}" for one in wanted)) == tuple(wanted)

    @pytest.mark.slow
    @given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("0123456789 \n#tf-.", max_size=60))
    def test_any_text_is_read_or_refused_in_one_line(self, text: str) -> None:
        found, error = read_or_error(text)
        if error:
            assert error.remedy
            assert "\n" not in str(error)
            return
        assert 0 < len(found) <= MOST_SHAPES
        assert all(1 <= size <= LARGEST for one in found for size in (one.m, one.n, one.k))
        assert all(one.dtype in DTYPES for one in found)

    @pytest.mark.parametrize(
        "line",
        [
            "512 50257", "1 2 3 bfloat16 5", "1 2 3 float64", "0 1 1", "-1 1 1", "1.5 1 1", "1e3 1 1", "a b c",
            "1 2 tf32", "9" * 4000 + " 1 1", f"1 1 {LARGEST + 1}",
            "\N{SUPERSCRIPT TWO} 1 1", "\N{ARABIC-INDIC DIGIT ONE} 1 1",
        ],
    )  # fmt: skip
    def test_a_line_that_is_no_matmul_is_named_by_its_number(self, line: str) -> None:
        assert ", line 3: " in refusal(f"8 8 8\n\n{line}\n8 8 8")

    def test_a_control_character_does_not_reach_the_terminal(self) -> None:
        assert "\x1b" not in refusal("8 8 \x1b[31mred")

    def test_limits(self) -> None:
        assert len(read("8 8 8\n" * MOST_SHAPES)) == MOST_SHAPES
        assert f"{MOST_SHAPES + 1} shapes" in refusal("8 8 8\n" * (MOST_SHAPES + 1))
        assert "0 shapes" in refusal("# nothing\n")

    @pytest.mark.parametrize("data", [b"\xff\xfe8 8 8", b"8 8 8 \x80"])
    def test_what_is_no_text(self, data: bytes) -> None:
        assert "is no text" in refusal(data)

    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        for path, why in ((tmp_path / "none.txt", "No such file or directory"), (tmp_path, "Is a directory")):
            with pytest.raises(UsageError, match=why):
                matmul_shapes.read(path)


class TestVariants:
    def test_a_vocabulary_is_padded_to_sixteen_bytes_and_to_a_line_of_the_cache(self) -> None:
        shape = MatmulShape(m=8191, n=50257, k=1000, dtype="bfloat16")
        assert [(one.m, one.n, one.k) for one in variants(shape)] == [
            (8191, 50257, 1000), (8191, 50264, 1000), (8191, 50304, 1024),
        ]  # fmt: skip
        assert [one.n for one in variants(MatmulShape(m=8, n=50257, k=8, dtype="tf32"))] == [50257, 50260, 50272]

    def test_what_is_aligned_already_is_measured_once(self) -> None:
        shape = MatmulShape(m=1, n=4096, k=4096, dtype="bfloat16")
        assert variants(shape) == [shape]

    @given(shapes)
    def test_they_begin_with_what_was_asked_and_only_grow_in_n_and_k(self, shape: MatmulShape) -> None:
        tried = variants(shape)
        assert tried[0] == shape
        assert len(set(tried)) == len(tried)
        for one in tried:
            assert (one.m, one.dtype) == (shape.m, shape.dtype)
            assert 0 <= one.n - shape.n < 64
            assert 0 <= one.k - shape.k < 64


@pytest.mark.usefixtures("twelve_rounds")
class TestMeasuring:
    def measured(self, *asked: MatmulShape) -> list[Any]:
        return list(matmul_shapes.measure(on_cpu("quick", shapes=asked)))

    @pytest.mark.slow
    def test_what_counts_is_the_work_that_was_asked_for(self) -> None:
        shape = MatmulShape(m=64, n=65, k=64, dtype="float32")
        plain, four, line = self.measured(shape)
        assert {row.params["shape"] for row in (plain, four, line)} == {"64 x 65 x 64 float32"}
        assert [row.params["n"] for row in (plain, four, line)] == [65, 68, 96]
        assert {row.unit for row in (plain, four, line)} == {"TFLOP/s"}
        arm = matmul_shapes._arm(on_cpu("quick"), shape, shape)
        assert arm.work == 2 * 64 * 65 * 64 / 1e12

    @pytest.mark.slow
    def test_a_dtype_that_the_device_lacks_is_a_gap_and_the_rest_is_measured(self) -> None:
        gap, *rows = self.measured(
            MatmulShape(m=8, n=8, k=8, dtype="tf32"), MatmulShape(m=32, n=32, k=32, dtype="float32")
        )
        assert gap == Gap(fact="bench.matmul_shapes", reason="8 x 8 x 8 tf32: this device has no native tf32")
        assert [row.params["m"] for row in rows] == [32]

    def test_one_that_does_not_fit_is_a_gap_and_another_error_is_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shape = MatmulShape(m=8, n=8, k=8, dtype="float32")

        def operands(*_: Any) -> Any:
            raise RuntimeError(self.why)

        monkeypatch.setattr(matmul_shapes, "operands", operands)
        self.why = "CUDA out of memory. Tried to allocate 1024.00 GiB"
        assert self.measured(shape) == [Gap(fact="bench.matmul_shapes", reason="8 x 8 x 8 float32: CUDA out of memory")]
        self.why = "an illegal memory access"
        with pytest.raises(RuntimeError, match=self.why):
            self.measured(shape)

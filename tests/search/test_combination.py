"""A combination of settings, by its effect and in words."""

from gputune.knobs import Limits, amp_dtype, matmul_precision
from gputune.search.combination import DEFAULT, Combination

BOTH = Combination.of({"matmul_precision": "tf32", "fused_optimizer": True})


def test_the_level_is_the_largest_effect() -> None:
    assert (DEFAULT.level, BOTH.level) == ("exact", "tf32")
    assert BOTH.plus("amp_dtype", "bfloat16").level == "mixed"


def test_within_a_level() -> None:
    assert BOTH.within("rounding") == BOTH.minus("matmul_precision") == Combination.of({"fused_optimizer": True})
    assert BOTH.within("exact") == DEFAULT


def test_what_one_has_beyond_another() -> None:
    assert BOTH.beyond(Combination.of({"fused_optimizer": True})).values == {"matmul_precision": "tf32"}
    assert DEFAULT.beyond(BOTH) == DEFAULT


def test_in_words() -> None:
    assert (str(DEFAULT), str(BOTH)) == ("torch's defaults", "fused_optimizer + tf32")
    assert str(BOTH.plus("dataloader_workers", 8)) == "8 workers + fused_optimizer + tf32"


def test_workers() -> None:
    assert BOTH.workers is None
    assert BOTH.plus("dataloader_workers", 8).workers == 8
    assert BOTH.plus("dataloader_workers", 8).only("dataloader_workers").items == (("dataloader_workers", 8),)


def test_results_may_be_as_far_off_as_any_of_its_settings_explains() -> None:
    assert DEFAULT.limits == Combination.of({"fused_optimizer": True}).limits == Limits()
    assert BOTH.limits == matmul_precision.PRECISION_LIMITS
    assert BOTH.plus("amp_dtype", "bfloat16").limits == amp_dtype.PRECISION_LIMITS

"""Each example trains, plain and with everything put in, and one line says what went in."""

import pytest

pytestmark = pytest.mark.frameworks

PUT_IN = {
    "classifier": "put into Classifier (convnet): amp_dtype bfloat16, channels_last, fused_optimizer",
    "character_gpt": "put into CharacterGPT (transformer): amp_dtype bfloat16, fused_optimizer",
    "trainer": (
        "put into GPT2LMHeadModel (transformer): amp_dtype bfloat16; left: fused_optimizer "
        "(the program gave fused=True)"
    ),
    "ddp": "put into Sequential (mlp): amp_dtype bfloat16, fused_optimizer",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", PUT_IN)
@pytest.mark.parametrize("applied", [False, True], ids=["plain", "applied"])
def test_it_trains(run, words, losses, script, applied):
    done = run(*words(script), applied=applied)
    fell = losses(done.stdout)
    assert fell[-1] < 0.8 * fell[0]
    assert " ms a step" in done.stdout
    told = [line[line.index("gputune: ") :] for line in done.stderr.splitlines() if "gputune: " in line]
    assert told == ([f"gputune: {PUT_IN[script]}"] if applied else [])

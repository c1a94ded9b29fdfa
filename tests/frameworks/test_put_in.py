"""Scripts that train real models with transformers, Lightning, Accelerate and torchrun, unchanged below `gputune
apply`: in FP32 they get what was chosen, and the precision that they choose themselves stays theirs.
"""

import sys
from pathlib import Path

import pytest
from making import before_others, command, environ, not_aborted, profile, written

from gputune.profile import Fingerprint

pytestmark = pytest.mark.frameworks

SCRIPTS = Path(__file__).with_name("scripts")
VALUES = {"amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True}
OWN = "amp_dtype (the program uses autocast or half precision itself)"
GIVEN = "fused_optimizer (the program gave fused=True)"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def said(tmp_path: Path, here: Fingerprint, *words: str) -> tuple[list[str], str]:
    made = written(tmp_path, profile(VALUES, here))
    apply = (sys.executable, "-P", "-m", "gputune", "apply", "--numerics", "mixed", made, "--", sys.executable)
    env = environ(OMP_NUM_THREADS="1", PYTHONPATH=before_others(SCRIPTS))
    done = not_aborted(lambda: command([*apply, *words], env=env))
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line[line.index("gputune: ") :] for line in done.stderr.splitlines() if "gputune: " in line]
    return lines, done.stdout.strip().splitlines()[-1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("script", "put_in", "own"),
    [
        (
            "hf_trainer",
            f"put into BertForSequenceClassification (transformer): amp_dtype bfloat16; left: {GIVEN}",
            f"nothing put into BertForSequenceClassification (transformer); left: {OWN}, {GIVEN}",
        ),
        (
            "lightning_fit",
            "put into ResNetForImageClassification (convnet): amp_dtype bfloat16, channels_last, fused_optimizer",
            f"put into ResNetForImageClassification (convnet): channels_last, fused_optimizer; left: {OWN}",
        ),
        (
            "accelerate_loop",
            "put into GPT2LMHeadModel (transformer): amp_dtype bfloat16, fused_optimizer",
            f"put into GPT2LMHeadModel (transformer): fused_optimizer; left: {OWN}",
        ),
    ],
)
def test_a_framework(tmp_path: Path, here: Fingerprint, script: str, put_in: str, own: str) -> None:
    path = str(SCRIPTS / f"{script}.py")
    fp32, output = said(tmp_path, here, path, "6")
    assert (fp32, output.split()[0]) == ([f"gputune: {put_in}"], {"lightning_fit": "steps"}.get(script, "loss"))
    assert said(tmp_path, here, path, "6", "--own-precision")[0] == [f"gputune: {own}"]


@pytest.mark.exhaustive
def test_ranks_of_torchrun_stay_alike_and_one_of_them_tells(tmp_path: Path, here: Fingerprint) -> None:
    lines, output = said(tmp_path, here, *TORCHRUN, str(SCRIPTS / "ddp_loop.py"), "6")
    told = "put into ViTForImageClassification (transformer): amp_dtype bfloat16, channels_last, fused_optimizer"
    assert lines == [f"gputune: {told}"]
    assert output.endswith("replicas equal: True")

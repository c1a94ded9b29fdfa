"""Whole scripts: their user's folder stays as it is, and they find again what they have saved."""

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Users, digest

pytestmark = pytest.mark.frameworks

SCRIPTS = {
    ("torch_loop.py",): "torch",
    ("safetensors_loop.py",): "safetensors.torch safetensors.numpy",
    ("distributed_loop.py",): "torch torch.distributed.checkpoint",
    ("hf_trainer.py",): "transformers transformers.trainer transformers.models.auto.modeling_auto",
    ("lightning_fit.py", "lightning.pytorch"): "lightning",
    ("lightning_fit.py", "pytorch_lightning"): "pytorch_lightning",
    ("accelerate_loop.py", "begin"): "accelerate",
}
"""With the libraries that each imports."""
ALL = pytest.mark.parametrize("words", SCRIPTS, ids=" ".join)
WHEN = ("before", "during", "after")
Again = Callable[..., Users]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "when"),
    [
        (words, when)
        for number, words in enumerate(SCRIPTS)
        for when in (WHEN if number == 0 else WHEN[1:2])
        if words[-1] != "begin"  # which begins once alone
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_the_users_checkpoints_stay_as_they_are(again: Again, words: tuple[str, ...], when: str) -> None:
    users = again(*words)
    before = digest(users.home)
    users.run(*words, "2", when=when, libraries=SCRIPTS[words])
    assert digest(users.home) == before
    assert users.saved()


@pytest.mark.sampled(4)
@ALL
def test_an_empty_folder_stays_empty(users: Users, words: tuple[str, ...]) -> None:
    before = digest(users.home)
    users.run(*words, "1", when="before")
    assert digest(users.home) == before


@pytest.mark.sampled(4)
@ALL
def test_what_is_saved_has_the_same_names(users: Users, populated: Any, words: tuple[str, ...]) -> None:
    users.run(*words, "1", when="before")
    ever = {str(path.relative_to(populated(*words))) for path in populated(*words).rglob("*") if path.is_file()}
    assert users.saved() == ever


class TestTransformers:
    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_training_goes_on_from_the_users_last_checkpoint_and_deletes_none(self, again: Again, when: str) -> None:
        users = again("hf_trainer.py")
        before = digest(users.home)
        assert "out/checkpoint-6/trainer_state.json" in users.files()
        told = users.run("hf_trainer.py", "2", "resume", when=when, libraries="transformers.trainer")
        assert "steps 2\n" in told
        assert digest(users.home) == before
        assert {name.split("/")[1] for name in users.saved() if "/checkpoint-" in name} == {"checkpoint-8"}

    @pytest.mark.exhaustive
    def test_the_best_model_is_found_again(self, again: Again) -> None:
        users = again("hf_trainer.py")
        before = digest(users.home)
        users.run("hf_trainer.py", "2", "best", when="before")
        assert digest(users.home) == before

    @pytest.mark.exhaustive
    def test_arguments_that_were_changed_later(self, again: Again) -> None:
        users = again("hf_trainer.py")
        before = digest(users.home)
        users.run("hf_trainer.py", "2", "changed", when="before")
        assert digest(users.home) == before
        assert any(name.startswith("changed/checkpoint-") for name in users.saved())

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_classes_of_the_programs_own_and_nothing_is_pushed(self, users: Users, when: str) -> None:
        users.run("hf_own_classes.py", "pushing", when=when, libraries="transformers transformers.trainer")
        assert users.files() == set()
        assert {"one/config.json", "two/config.json"} <= users.saved()

    @pytest.mark.exhaustive
    def test_without_a_checkpoint_resuming_fails_as_ever(self, users: Users) -> None:
        with pytest.raises(AssertionError, match="No valid checkpoint found in output directory"):
            users.run("hf_trainer.py", "2", "resume", when="before")


def test_accelerate_goes_on_from_the_users_last_state(again: Again) -> None:
    users = again("accelerate_loop.py", "begin")
    before = digest(users.home)
    users.run("accelerate_loop.py", "resume", "2", when="before")
    assert digest(users.home) == before
    assert "project/checkpoints/checkpoint_5/model.safetensors" in users.saved()


@pytest.mark.exhaustive
def test_links_in_the_scratch_folder(users: Users) -> None:
    (users.home.parent / "behind").mkdir()
    users.scratch.symlink_to(users.home.parent / "behind")
    users.run("lightning_fit.py", "lightning.pytorch", "1", when="before")
    assert users.files() == set()
    assert "checkpoints/last.ckpt" in users.saved()


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorboardX"])
def test_events_of_tensorboard(users: Users, library: str) -> None:
    pytest.importorskip("tensorboard" if library.startswith("torch") else library)
    script = users.home.parent / "train.py"
    script.write_text(
        f"from {library} import SummaryWriter\n"
        "for words in ((), ('named',)):\n"
        "    with SummaryWriter(*words) as writer:\n"
        "        writer.add_scalar('loss', 1.0, 1)\n"
        "        writer.add_scalars('losses', {'one': 1.0}, 1)\n"
        "        writer.add_hparams({'rate': 1.0}, {'loss': 1.0})\n"
    )
    users.run(script, when="before")
    assert users.files() == set()
    assert {name.split("/")[0] for name in users.saved()} == {"runs", "named"}

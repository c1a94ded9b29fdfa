"""transformers' real TrainingArguments and Trainer with the arguments of a profile."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from frameworks.everything import EVERYTHING, FLAGS

from gputune.integrations.accelerate import VARIABLE
from gputune.integrations.transformers import training_arguments
from gputune.runtime.tuning import Tuning

pytestmark = pytest.mark.frameworks

QUIET = {"report_to": "none", "disable_tqdm": True}
WORKERS = {"dataloader_workers": 2, "dataloader_prefetch_factor": 4}


@pytest.fixture(scope="module", autouse=True)
def transformers() -> Any:
    for name in ("trainer", "models.bert.modeling_bert"):  # of what is imported only when it is asked for
        importlib.import_module(f"transformers.{name}")
    return importlib.import_module("transformers")


@pytest.fixture
def made(transformers: Any, tmp_path: Path) -> Callable[..., Any]:
    return lambda **given: transformers.TrainingArguments(output_dir=str(tmp_path), **QUIET, **given)


class TestArguments:
    @pytest.mark.parametrize("values", [{}, {"dataloader_workers": 0, "dataloader_prefetch_factor": 4}])
    def test_without_choices_there_are_none(self, values: dict[str, Any]) -> None:
        assert training_arguments(Tuning(values)) == {}

    def test_what_is_torchs_default_leaves_transformers_its_own(self, made: Callable[..., Any]) -> None:
        """Pinned memory and, from torch 2.8 on, the fused optimizer; false may also mean that nothing was measured."""
        given = training_arguments(
            Tuning({"dataloader_pin_memory": False, "fused_optimizer": False, "amp_dtype": None})
        )
        assert given == {}
        assert (made(**given).dataloader_pin_memory, made(**given).optim) == (True, "adamw_torch_fused")

    def test_workers(self, made: Callable[..., Any]) -> None:
        given = training_arguments(Tuning(WORKERS | {"dataloader_pin_memory": True}))
        assert given == {"dataloader_num_workers": 2, "dataloader_prefetch_factor": 4}
        args = made(**given)
        assert (args.dataloader_num_workers, args.dataloader_prefetch_factor) == (2, 4)
        assert args.dataloader_pin_memory is True

    def test_for_a_dataset_of_one_sample_there_are_no_workers(self) -> None:
        assert training_arguments(Tuning(WORKERS), [1]) == {}

    def test_a_fused_optimizer_where_it_is_not_the_default(
        self, transformers: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tuning = Tuning({"fused_optimizer": True})
        assert training_arguments(tuning) == {}
        monkeypatch.setattr(transformers.TrainingArguments, "optim", "adamw_torch")  # as below torch 2.8
        assert training_arguments(tuning) == {"optim": "adamw_torch_fused"}

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_bfloat16_where_there_is_no_gpu(self, made: Callable[..., Any]) -> None:
        given = training_arguments(Tuning({"amp_dtype": "bfloat16"}))
        assert given == {"bf16": True, "use_cpu": True}
        assert made(**given).mixed_precision == "bf16"
        with pytest.raises(ValueError, match="You need to assign use_cpu"):
            made(bf16=True)

    def test_bfloat16_on_a_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        assert training_arguments(Tuning({"amp_dtype": "bfloat16"})) == {"bf16": True}

    def test_float16(self, made: Callable[..., Any]) -> None:
        given = training_arguments(Tuning({"amp_dtype": "float16"}))
        assert given == {"fp16": True}
        assert made(**given).mixed_precision == "fp16"

    @pytest.mark.parametrize(("asked", "given"), [("fp16", {}), ("no", {"fp16": True})])
    def test_what_the_user_asked_accelerate_launch_for_stays(
        self, monkeypatch: pytest.MonkeyPatch, made: Callable[..., Any], asked: str, given: dict[str, Any]
    ) -> None:
        monkeypatch.setenv(VARIABLE, asked)
        tuning = Tuning({"amp_dtype": "float16"})
        assert training_arguments(tuning) == given
        assert made(**training_arguments(tuning)).mixed_precision == "fp16"


class TestTrainer:
    @pytest.fixture
    def model(self, transformers: Any) -> Any:
        sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "max_position_embeddings": 8}
        config = transformers.BertConfig(num_hidden_layers=1, num_attention_heads=2, **sizes)
        return transformers.BertForSequenceClassification(config)

    @pytest.fixture
    def trainer(self, transformers: Any, made: Callable[..., Any], model: Any) -> Callable[..., Any]:
        data = [{"input_ids": torch.arange(8) + number, "labels": torch.tensor(number % 2)} for number in range(12)]

        def make(tuning: Tuning, **more: Any) -> Any:
            prepared = tuning.prepare(model)  # first: it tells the kind of network
            args = made(**more, **training_arguments(tuning))
            return transformers.Trainer(model=prepared, args=args, train_dataset=data)

        return make

    def test_in_bfloat16_it_trains_compiled_with_workers_and_the_flags_stay(
        self, applied: Callable[..., Tuning], flags: Any, graphs: list[Any], model: Any, trainer: Any
    ) -> None:
        tuning = applied(**EVERYTHING)
        names, before, dtypes = set(model.state_dict()), flags(), set()
        model.bert.pooler.register_forward_hook(lambda layer, inputs, out: dtypes.add(out.dtype))
        training = trainer(tuning, max_steps=3, save_steps=3)
        assert training.train().global_step == 3
        assert (tuning.family, dtypes) == ("transformer", {torch.bfloat16})
        assert graphs
        assert flags() == before == FLAGS
        saved = Path(training.args.output_dir, "checkpoint-3", "model.safetensors")
        assert set(importlib.import_module("safetensors.torch").load_file(saved)) == names

    def test_without_choices_it_trains_as_ever(self, applied: Callable[..., Tuning], flags: Any, trainer: Any) -> None:
        tuning, before = applied(), flags()
        training = trainer(tuning, max_steps=1, save_strategy="no")
        assert training.train().global_step == 1
        assert (training.accelerator.mixed_precision, flags()) == ("no", before)

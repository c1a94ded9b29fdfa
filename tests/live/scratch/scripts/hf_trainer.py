"""A tiny BERT that transformers' Trainer trains, saving every other step and keeping one checkpoint."""

import sys

import torch
from tokenizers import Tokenizer, models
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    GenerationConfig,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

set_seed(int(sys.argv[1]))
STEPS = 8 if "resume" in sys.argv else 6


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        return {"input_ids": torch.arange(4) + number % 8, "labels": number % 2}


class Count(TrainerCallback):
    steps = 0

    def on_step_end(self, *_, **__):
        self.steps += 1


config = BertConfig(
    vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
    max_position_embeddings=8,
)  # fmt: skip
model = BertForSequenceClassification(config)
words = Tokenizer(models.WordLevel({"[UNK]": 0, "one": 1}, unk_token="[UNK]"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[UNK]")
arguments = TrainingArguments(
    "out", max_steps=STEPS, per_device_train_batch_size=4, use_cpu=True, save_strategy="steps", save_steps=2,
    save_total_limit=1, eval_strategy="steps", eval_steps=2, load_best_model_at_end="best" in sys.argv,
    report_to="none", disable_tqdm=True, logging_steps=1,
)  # fmt: skip
if "changed" in sys.argv:
    arguments.output_dir = "changed"
count = Count()
trainer = Trainer(
    model, arguments, train_dataset=Samples(), eval_dataset=Samples(), processing_class=tokenizer, callbacks=[count]
)
trainer.train(resume_from_checkpoint="resume" in sys.argv)
assert trainer.state.global_step == STEPS
trainer.save_model("final")
trainer.save_state()
trainer.save_metrics("train", {"loss": 1.0})

weights = trainer.model.state_dict()
model.save_pretrained(save_directory="again")
for folder in ("final", "again"):
    assert BertForSequenceClassification.from_pretrained(folder).classifier.weight.equal(weights["classifier.weight"])
assert AutoModel.from_pretrained("final").config.hidden_size == 8
config.save_pretrained("configuration")
assert AutoConfig.from_pretrained("configuration").hidden_size == 8
tokenizer.save_pretrained("words")
assert AutoTokenizer.from_pretrained("words").vocab_size == 2
GenerationConfig(max_length=7).save_pretrained("generation")
assert GenerationConfig.from_pretrained("generation").max_length == 7
print(f"steps {count.steps}")

"""A program whose own classes of transformers save and load in their own way, and a Trainer that is to push."""

import sys
from pathlib import Path

from transformers import BertConfig, BertModel, Trainer, TrainingArguments
from transformers.utils import PushToHubMixin


class Odd(PushToHubMixin):
    def save_pretrained(self):
        return "odd"

    @classmethod
    def from_pretrained(cls):
        return "odd"


class Own(BertConfig):
    def save_pretrained(self, *words, **named):
        Path(words[0] if words else named["save_directory"]).mkdir(exist_ok=True)
        super().save_pretrained(*words, **named)


assert Odd().save_pretrained() == Odd.from_pretrained() == "odd"
config = Own(
    vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, pad_token_id=None
)
config.save_pretrained("one")
config.save_pretrained(save_directory="two")
assert Own.from_pretrained("one").hidden_size == Own.from_pretrained(pretrained_model_name_or_path="two").hidden_size
if sys.argv[1] == "pushing":
    arguments = TrainingArguments(push_to_hub=True, report_to="none", use_cpu=True)
    assert Trainer(BertModel(config), arguments).push_to_hub() is None

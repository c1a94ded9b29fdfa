"""transformers' Trainer, unchanged: a small GPT-2 with random weights learns to go on counting.

    pip install transformers accelerate
    gputune tune -o profile.yaml -- python trainer.py
    gputune apply profile.yaml -- python trainer.py

As it is, it trains in seconds on two CPUs; on a GPU add --large to each command. Nothing is downloaded: the network is
made from its configuration. The Trainer trains in FP32 unless told otherwise, and already asks for a fused optimizer.
"""

import argparse
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

WORDS = 128


class Counting(Dataset):
    """Sequences that begin anywhere and go up by a step of their own, modulo the vocabulary."""

    def __init__(self, count, length):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        random = torch.Generator().manual_seed(number)
        start, step = torch.randint(WORDS, (1,), generator=random), torch.randint(1, 4, (1,), generator=random)
        words = (start + step * torch.arange(self.length)) % WORDS
        return {"input_ids": words, "labels": words}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--large", action="store_true", help="a network that fills a GPU")
    wanted = parser.parse_args()
    batch, length, width, heads, depth = (32, 512, 768, 12, 12) if wanted.large else (8, 32, 64, 2, 2)

    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=WORDS, n_positions=length, n_embd=width, n_head=heads, n_layer=depth,
            bos_token_id=0, eos_token_id=0, use_cache=False,
        )
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=wanted.steps,
            per_device_train_batch_size=batch,
            learning_rate=3e-4 if wanted.large else 3e-3,
            logging_steps=max(1, wanted.steps // 6),
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(model, arguments, train_dataset=Counting(wanted.steps * batch, length))
        result = trainer.train()
    for row in trainer.state.log_history:
        if "loss" in row:
            print(f"step {row['step']}: loss {float(row['loss']):.3f}")
    print(f"{1000 / result.metrics['train_steps_per_second']:.1f} ms a step")


if __name__ == "__main__":
    main()

"""BERT, fine-tuned by transformers' Trainer in FP32; with --by-hand in mixed precision and compiled."""

import sys
import tempfile

import models
import torch
import transformers

STEPS = int(sys.argv[1])
torch.manual_seed(0)
model, batch, sample = models.bert()
by_hand = {}
if "--by-hand" in sys.argv:
    models.flags_by_hand()
    by_hand = {"bf16": True, "torch_compile": True}
own = {"bf16": True} if "--own-precision" in sys.argv else {}
with tempfile.TemporaryDirectory() as folder:
    quiet = {"report_to": "none", "save_strategy": "no", "logging_strategy": "no", "disable_tqdm": True}
    arguments = transformers.TrainingArguments(
        folder, max_steps=STEPS, per_device_train_batch_size=batch,
        use_cpu=not models.GPU, dataloader_num_workers=models.WORKERS, max_grad_norm=1.0, **quiet, **by_hand, **own,
    )  # fmt: skip
    trainer = transformers.Trainer(model, arguments, train_dataset=models.Samples(sample, STEPS * batch))
    print(f"loss {trainer.train().training_loss:.1f}")

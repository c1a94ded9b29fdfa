"""ResNet-50, trained by Lightning's Trainer in FP32; with --by-hand in mixed precision, channels_last and compiled."""

import sys

import lightning
import models
import torch

STEPS = int(sys.argv[1])
BY_HAND = "--by-hand" in sys.argv


class Classifier(lightning.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def training_step(self, batch, _):
        return self.model(batch["pixels"] / 255, labels=batch["labels"]).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4, **({"fused": True} if BY_HAND else {}))

    def configure_gradient_clipping(self, *_, **__):
        """By hand too, since Lightning refuses gradient_clip_val beside a fused optimizer in mixed precision."""
        torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)


torch.manual_seed(0)
model, batch, sample = models.resnet()
if BY_HAND:
    models.flags_by_hand()
    model = model.to(memory_format=torch.channels_last)
    model.compile()
own = {"precision": "bf16-mixed"} if BY_HAND or "--own-precision" in sys.argv else {}
trainer = lightning.Trainer(
    max_steps=STEPS, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, devices=1, **own,
)  # fmt: skip
loader = torch.utils.data.DataLoader(
    models.Samples(sample, STEPS * batch), batch_size=batch, num_workers=models.WORKERS, pin_memory=models.GPU
)
trainer.fit(Classifier(model), loader)
print(f"steps {trainer.global_step}")

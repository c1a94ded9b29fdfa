"""GPT-2, trained in a loop with Accelerate in FP32; with --by-hand in mixed precision, fused and compiled."""

import sys

import accelerate
import models
import torch

STEPS = int(sys.argv[1])
BY_HAND = "--by-hand" in sys.argv
torch.manual_seed(0)
model, batch, sample = models.gpt2()
precision = "bf16" if BY_HAND or "--own-precision" in sys.argv else "no"
accelerator = accelerate.Accelerator(mixed_precision=precision)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if BY_HAND else {}))
loader = torch.utils.data.DataLoader(
    models.Samples(sample, STEPS * batch), batch_size=batch, num_workers=models.WORKERS
)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if BY_HAND:
    models.flags_by_hand()
    model.compile()
for inputs in loader:
    optimizer.zero_grad()
    loss = model(**inputs).loss
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
accelerator.end_training()
print(f"loss {loss.item():.1f}")

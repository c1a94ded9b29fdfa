"""TF32 that the program sets itself after gputune has: for all operations, for matmuls, or by the older flags."""

import sys

import torch

HOW = sys.argv[1]
if HOW == "root":
    torch.backends.fp32_precision = "ieee"
elif HOW == "operation":
    torch.backends.cuda.matmul.fp32_precision = "ieee"
elif HOW == "flag":
    torch.backends.cuda.matmul.allow_tf32 = False
else:
    torch.set_float32_matmul_precision("highest")
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)

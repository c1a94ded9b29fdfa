"""Accelerate saves states of a training by number and by name, and goes on from them."""

import sys

import torch
from accelerate import Accelerator, load_checkpoint_in_model
from accelerate.utils import ProjectConfiguration, set_seed

set_seed(int(sys.argv[-1]))
numbered = ProjectConfiguration("project", automatic_checkpoint_naming=True, total_limit=2)
accelerator = Accelerator(cpu=True, project_config=numbered)
bare = torch.nn.Linear(3, 2)
model, optimizer = accelerator.prepare(bare, torch.optim.SGD(bare.parameters(), lr=0.1))
if sys.argv[1] == "resume":
    accelerator.load_state()
    assert optimizer.param_groups[0]["lr"] == 0.2
    accelerator.project_configuration.iteration = 3
else:
    optimizer.param_groups[0]["lr"] = 0.2
for _ in range(3):
    accelerator.save_state()
weights = bare.weight.detach().clone()
torch.nn.init.zeros_(bare.weight)
accelerator.load_state()
assert bare.weight.equal(weights)
numbered.automatic_checkpoint_naming = False
accelerator.save_state("states")
accelerator.save_model(model, "weights")
accelerator.save(bare.state_dict(), "bare.pt")
torch.nn.init.zeros_(bare.weight)
accelerator.load_state("states")
assert bare.weight.equal(weights)
torch.nn.init.zeros_(bare.weight)
load_checkpoint_in_model(bare, "weights")
assert bare.weight.equal(weights)
Accelerator(cpu=True, project_dir="other").save_state(output_dir="other/state")

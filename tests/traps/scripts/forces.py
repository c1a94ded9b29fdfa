"""An interatomic potential, whose forward takes the forces as derivatives of its energy, which are trained as well."""

import torch
from torch import nn

torch.manual_seed(0)


class Potential(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))

    def forward(self, atoms: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        places = atoms["places"].requires_grad_()
        energy = self.layers(places).sum()
        return {"energy": energy, "forces": -torch.autograd.grad(energy, places, create_graph=True)[0]}


model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    output = model({"places": torch.randn(8, 3)})
    loss = output["energy"].square() + output["forces"].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        print(f"step {step}: loss {loss.item():.0f}, {output['forces'].dtype}")

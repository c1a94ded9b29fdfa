"""An actor returns a distribution and an action drawn from it, whose log-probability the distribution's transform finds
by the very tensor that it made; it is infinite for one of the same value.
"""

import torch
from torch import nn
from torch.distributions import Normal, TanhTransform, TransformedDistribution


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs):
        mean, spread = self.layer(inputs).chunk(2, -1)
        self.spread = TransformedDistribution(Normal(mean, 3 + spread.exp()), [TanhTransform(cache_size=1)])
        return self.spread.rsample(), self.spread


torch.manual_seed(0)
actor = Actor()
optimizer = torch.optim.AdamW(actor.parameters(), lr=0.01)
for _ in range(6):
    action, spread = actor(torch.ones(64, 4))
    chances = spread.log_prob(action)
    loss = (0.1 * chances.sum(-1) + action.sum(-1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(action.dtype, chances.dtype, bool(chances.isfinite().all()), spread is actor.spread)

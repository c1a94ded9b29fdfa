"""On a GPU a step whose gradients are not finite in mixed precision is left out, though nobody waits for the answer."""

import pytest
import torch
from hands_on import rooted, unfollowed
from torch import nn

from gputune.live import observer
from gputune.live.installer import Installer
from gputune.live.nets.not_finite import EVERY, NotFinite

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_a_fused_optimizer_leaves_it_out(kind):
    torch.manual_seed(0)
    model, off = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).cuda(), []
    optimizer = kind(model.parameters(), lr=1e-3, fused=True)
    root = rooted(model, optimizer, device="cuda", failed=lambda names, why: off.extend(names))
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"amp_dtype": "bfloat16"}) == {}
    installer.switch({"amp_dtype": "bfloat16"})
    steps, bad = 6 * EVERY, EVERY + 3
    with unfollowed():
        observer.follow(NotFinite(root))
        for number in range(steps):
            optimizer.zero_grad()
            loss = model(torch.randn(32, 64, device="cuda")).square().mean()
            (loss * float("inf") if number == bad else loss).backward()
            before = model[0].weight.detach().clone() if number == bad else None
            optimizer.step()
            if before is not None:
                assert torch.equal(before, model[0].weight)
    assert off == ["amp_dtype"]
    assert all(one.isfinite().all() for one in model.parameters())

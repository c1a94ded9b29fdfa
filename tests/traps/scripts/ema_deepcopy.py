"""Averaged weights kept by hand in deep copies, one made before the first step and one made later."""

import copy

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(16, 4)
averages = {"early": copy.deepcopy(model)}
kept = {"early": [parameter.detach().clone() for parameter in model.parameters()]}
for step in range(8):
    if step == 5:
        averages["late"] = copy.deepcopy(model)
        kept["late"] = [parameter.detach().clone() for parameter in model.parameters()]
    loss = (model(inputs) - inputs[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, average in averages.items():
        with torch.no_grad():
            for own, by_hand, now in zip(average.parameters(), kept[name], model.parameters(), strict=True):
                own.lerp_(now, 0.1)
                by_hand.lerp_(now, 0.1)
for name, average in averages.items():
    print(name, all(map(torch.equal, average.parameters(), kept[name])), list(average.state_dict()))
    one, _, two = average
    by_hand = torch.nn.functional.linear(inputs, one.weight, one.bias).relu()
    by_hand = torch.nn.functional.linear(by_hand, two.weight, two.bias)
    with torch.no_grad():
        print("computes with its own weights:", torch.equal(average(inputs), by_hand))
    print("also with gradients:", torch.allclose(average(inputs), by_hand, atol=0.02), average(inputs).dtype)
    print("and not with the model's:", torch.allclose(average(inputs), model(inputs), atol=1e-4))

"""The program compiles its model itself: the names in its state are those that torch.compile gives. Or it compiles a
function that holds the model's call and the loss.
"""

import sys

import torch

graphs = []


def backend(graph, example_inputs):
    graphs.append(graph)
    return graph.forward


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
if "function" in sys.argv:
    compiled = torch.compile(lambda inputs: model(inputs).square(), backend=backend, fullgraph=True)
else:
    compiled = torch.compile(model, backend=backend, fullgraph=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = torch.randn(16, 4)
for step in range(8):
    loss = compiled(inputs[: 16 if step < 5 else 8 + step]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", loss.dtype)
if "function" not in sys.argv:
    print(list(compiled.state_dict()), type(compiled).__name__)
print(
    len(graphs) < 5,
    [len(graph.graph.nodes) for graph in graphs[:1]],
    sorted(vars(model)) == sorted(vars(torch.nn.ReLU())),
)

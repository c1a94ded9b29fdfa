"""The program compiles its model itself: the names in its state are those that torch.compile gives."""

import torch

graphs = []


def backend(graph, example_inputs):
    graphs.append(graph)
    return graph.forward


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
compiled = torch.compile(model, backend=backend, fullgraph=True)
optimizer = torch.optim.AdamW(compiled.parameters(), lr=1e-3)
inputs = torch.randn(16, 4)
for step in range(8):
    loss = compiled(inputs[: 16 if step < 5 else 8 + step]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", loss.dtype)
print(list(compiled.state_dict()), type(compiled).__name__)
print(
    len(graphs) < 5,
    [len(graph.graph.nodes) for graph in graphs[:1]],
    sorted(vars(model)) == sorted(vars(torch.nn.ReLU())),
)

"""The program compiles a function that holds the model's call and the loss."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
graphs = []


def backend(graph, example_inputs):
    graphs.append(graph)
    return graph.forward


@torch.compile(backend=backend, fullgraph=True)
def compute(inputs):
    return model(inputs).square().mean()


inputs = torch.randn(16, 4)
for step in range(6):
    loss = compute(inputs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}", loss.dtype)
print("compiled", len(graphs))

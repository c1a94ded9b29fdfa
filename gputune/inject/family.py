"""The kind of network that a model is, judged by its layers: the best settings differ by kind."""

from typing import Any

FAMILIES = ("transformer", "convnet", "recurrent", "mlp")


def family(model: Any) -> str | None:
    """Classify a torch.nn.Module as one of `FAMILIES`; None where it is none of these.

    Attention outranks convolutions (a vision transformer cuts its patches with one), and those outrank recurrence.
    """
    import torch

    nn = torch.nn
    layers = list(model.modules())
    attention = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    if any(isinstance(layer, attention) or "Attention" in type(layer).__name__ for layer in layers):
        return "transformer"
    convolutions = (
        nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    )  # fmt: skip
    if any(isinstance(layer, convolutions) and [*layer.parameters(recurse=False)] for layer in layers):
        return "convnet"
    if any(isinstance(layer, nn.RNNBase) for layer in layers):
        return "recurrent"
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    others = [layer for layer in layers if not isinstance(layer, nn.Linear)]
    return "mlp" if linear and not any(_has_matrix(layer) for layer in others) else None


def _has_matrix(layer: Any) -> bool:
    """Whether the layer itself has a parameter of two or more dimensions; normalisation layers have only vectors."""
    return any(parameter.dim() > 1 for parameter in layer.parameters(recurse=False))

"""A profile's choices that a framework takes over all at once, and torch's flags under them."""

EVERYTHING = {
    "amp_dtype": "bfloat16", "matmul_precision": "tf32", "cudnn_tf32": False, "cudnn_benchmark": True, "compile": True,
    "fused_optimizer": True, "dataloader_workers": 1, "dataloader_prefetch_factor": 4,
}  # fmt: skip
FLAGS = {"level": "high", "matmul": (True, "tf32"), "cudnn": (False, "ieee"), "benchmark": True}
NO_KNOB = {"cudnn_benchmark": True, "compile": True, "fused_optimizer": True, "dataloader_workers": 2}
"""Choices for which neither Lightning's Trainer nor Accelerate's Accelerator has an argument."""

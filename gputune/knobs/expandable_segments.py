"""Let torch's CUDA allocator grow its segments (`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`); off by default.

Where sizes vary from step to step, freed blocks of other sizes stay behind unused, and a program runs out of memory
with gigabytes reserved. Segments that grow leave fewer such holes. It saves memory and not time, and it breaks some
uses: sharing CUDA tensors between processes, some pools of CUDA graphs, and GPUs without virtual memory management
(vGPU, WSL). So no bench speaks for it, and a profile leaves it off until you write `true` there.

torch up to 2.9 reads only the older name of the variable, and 2.9 yet warns that it is deprecated; newer releases read
the new name, PYTORCH_ALLOC_CONF, if the older is not set. Both are exported, with one value.

Source: PyTorch, "CUDA semantics" notes, memory management; executed on 2.8 to 2.15.
"""

import os

from . import Numerics, Phase

VALUE = bool
DEFAULT = False
UNMEASURED = "torch's default; it saves memory where sizes vary, not time, and is not measured"
PHASE: Phase = "launch"
NUMERICS: Numerics = "exact"
DEPENDS = ("device",)

NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""The variable's two names, in the order in which torch looks for them."""
_ON = "expandable_segments:True"


def environ(value: bool) -> dict[str, str]:
    return dict.fromkeys(NAMES, _ON) if value else {}


def current() -> bool:
    """Read from the variable that torch reads: asking torch itself would freeze its configuration."""
    settings = next((os.environ[name] for name in NAMES if name in os.environ), "")
    return _ON in settings.replace(" ", "").split(",")

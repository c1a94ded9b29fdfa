"""Setting and reading TF32 on torch 2.1 to 2.15, so that neither of torch's two interfaces is left raising.

torch 2.9 added `fp32_precision` nodes (root, one for each back end, one for each operation; an operation that nobody
set inherits) beside the older booleans. Setting only one view makes the getters of the other raise RuntimeError,
which torch.compile, torch.export and Lightning then trip over. So both views are always written, operation by
operation:

1. The parents are left alone: each is at "none" or was set by the user.
2. The older view: the two booleans and `set_float32_matmul_precision`, in this order: the matmul boolean resets the
   level.
3. The same meaning at the operations' nodes. Step 2 also moves oneDNN's matmul on the CPU; that is put back, as far as
   the level agrees with it (`_onednn`).

Source: executed on the wheels of 2.1 to 2.15; PyTorch's CUDA notes and ATen/Context.cpp.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ._setters import by_us

SET_NODE = "_set_fp32_precision_setter"
"""The function of `torch._C` that sets a node: it takes a back end, an operation and a precision."""
SET_CUDNN = "_set_cudnn_allow_tf32"
SET_MATMUL = ("_set_cublas_allow_tf32", "_set_float32_matmul_precision")
SETTERS = (*SET_MATMUL, SET_CUDNN, SET_NODE)
"""The functions of `torch._C` through which everything in Python sets TF32, if this torch has them."""


@contextmanager
def _by_us() -> Iterator[None]:
    with by_us(), warnings.catch_warnings():  # 2.9.0 alone warns that the older view is deprecated
        warnings.simplefilter("ignore")
        yield


def new_interface(torch: Any) -> bool:
    """Whether torch has the nodes. `hasattr` on the back ends is fooled by an assignment on 2.8 and older."""
    return hasattr(torch._C, "_get_fp32_precision_getter")


def matmul() -> bool:
    """Whether the flags allow TF32 for FP32 matmuls."""
    import torch

    if new_interface(torch):
        return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"
    return bool(torch.backends.cuda.matmul.allow_tf32)


def cudnn() -> bool | None:
    """Whether the flags allow TF32 for FP32 convolutions and RNNs; None where a user made the two differ."""
    import torch

    if not new_interface(torch):
        return bool(torch.backends.cudnn.allow_tf32)
    conv, rnn = (str(node.fp32_precision) == "tf32" for node in (torch.backends.cudnn.conv, torch.backends.cudnn.rnn))
    return conv if conv == rnn else None


def set_matmul(allow: bool) -> None:
    import torch

    if matmul() == allow and not _raises(torch, "matmul"):
        return
    new = new_interface(torch)
    onednn = _onednn(torch, allow) if new else "ieee"
    high = "medium" if onednn == "bf16" else "high"  # the level that agrees with a oneDNN matmul set to bf16
    with _by_us():
        torch.backends.cuda.matmul.allow_tf32 = allow
        torch.set_float32_matmul_precision(high if allow else "highest")
        if new:
            torch.backends.cuda.matmul.fp32_precision = _word(allow)
            torch.backends.mkldnn.matmul.fp32_precision = onednn


def set_cudnn(allow: bool) -> None:
    import torch

    if cudnn() == allow and not _raises(torch, "cudnn"):
        return
    with _by_us():
        torch.backends.cudnn.allow_tf32 = allow
        if new_interface(torch):
            # The older setter writes "none" for False, which inherits a parent's "tf32".
            torch.backends.cudnn.conv.fp32_precision = _word(allow)
            torch.backends.cudnn.rnn.fp32_precision = _word(allow)


def set_node(*given: str) -> None:
    import torch

    with _by_us():
        torch._C._set_fp32_precision_setter(*given)


def chooses_matmul(setter: str, given: Sequence[Any]) -> bool:
    """Whether a call of a function of `SETTERS` chooses a precision of matmuls, perhaps for more than these. (oneDNN's
    counts: torch compares it with the level that is set for CUDA's.)
    """
    return given[1] in ("all", "matmul") if setter == SET_NODE else setter in SET_MATMUL


def chooses_cudnn(setter: str, given: Sequence[Any]) -> bool:
    """Whether a call of a function of `SETTERS` chooses a precision of convolutions or RNNs, perhaps for more."""
    return given[0] != "mkldnn" and given[1] != "matmul" if setter == SET_NODE else setter == SET_CUDNN


def undoing_matmul() -> Callable[[Sequence[Any]], None]:
    """Make a function that gives matmuls their present precision again, in both views. Its argument, the inputs of the
    setter that the program is about to call, is not used.
    """
    import torch

    nodes = _nodes(torch, ("cuda", "matmul"), ("mkldnn", "matmul"))
    level = "highest" if _raises(torch, "matmul") else torch.get_float32_matmul_precision()

    def undo(_: Sequence[Any]) -> None:
        with _by_us():
            torch._C._set_cublas_allow_tf32(level != "highest")
            torch.set_float32_matmul_precision(level)
        for node in nodes:
            set_node(*node)

    return undo


def undoing_cudnn() -> Callable[[Sequence[Any]], None]:
    """Make a function that gives convolutions and RNNs their present precision again, in both views. It is called with
    the inputs of the setter that the program is about to call: in newer torches the default follows a parent that is
    set, and cannot be set itself.
    """
    import torch

    nodes = _nodes(torch, ("cuda", "conv"), ("cuda", "rnn"))
    allow = _raises(torch, "cudnn") or torch._C._get_cudnn_allow_tf32()
    follows = bool(nodes) and _follows_the_root(torch)

    def undo(given: Sequence[Any]) -> None:
        with _by_us():
            torch._C._set_cudnn_allow_tf32(allow)
        for backend, operation, word in nodes:
            set_node(backend, operation, "none" if follows and "all" in given else word)

    return undo


def _follows_the_root(torch: Any) -> bool:
    get = torch._C._get_fp32_precision_getter
    if get("generic", "all") != "none":
        return False
    set_node("generic", "all", "ieee")
    follows = bool(get("cuda", "conv") == "ieee")
    set_node("generic", "all", "none")
    return follows


def _nodes(torch: Any, *places: tuple[str, str]) -> list[tuple[str, str, str]]:
    """Each of these nodes with the word that it was set to; "none" for one that inherits."""
    if not new_interface(torch):
        return []
    get = torch._C._get_fp32_precision_getter
    words = [(get(*place), get(place[0], "all")) for place in places]
    return [(*place, "none" if word == above else word) for place, (word, above) in zip(places, words, strict=True)]


def _word(allow: bool) -> str:
    return "tf32" if allow else "ieee"


def _onednn(torch: Any, allow: bool) -> str:
    """The precision to write for oneDNN's matmul on the CPU: its present one, unless the new level contradicts it. A
    "bf16" that already contradicts the level is taken to be the user's: it stays, and the getter goes on raising.
    """
    word = str(torch.backends.mkldnn.matmul.fp32_precision)
    stays = allow or (word == "bf16" and _raises(torch, "level"))
    return word if stays and word != "none" else "ieee"


def _raises(torch: Any, view: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if view == "cudnn":
                _ = torch.backends.cudnn.allow_tf32
                return False
            if view == "matmul":
                _ = torch.backends.cuda.matmul.allow_tf32
            _ = torch.get_float32_matmul_precision()
        except RuntimeError:
            return True
    return False

"""A model's outputs, as they would be without mixed precision, channels_last and inference mode."""

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

PLAIN = frozenset((int, float, complex, bool, str, bytes, NoneType))
"""The types, exactly, that hold no tensor."""
LONG = 16
"""A container of this many elements or more is skipped if all are plain. Asking that of shorter ones takes longer than
looking into each element."""
MOST_NODES = 100_000
"""The nodes of an autograd graph that are looked at."""


Known = dict[int, tuple[Any, Any]]
"""By its id, what was replaced, and by what."""


class Uncopied(TypeError):
    """An output whose class makes no copy with other tensors, as a setting needs it."""

    def __init__(self, output: Any, setting: str | None = None) -> None:
        super().__init__(f"its output, of the class {type(output).__name__}, cannot be copied with other tensors")
        self.output, self.setting = output, setting


def restored(output: Any, half: Any, inputs: Any = None, known: Known | None = None) -> Any:
    """The output with tensors of the dtype `half` in FP32. If `inputs` are given and none of them asks for
    channels_last, it has torch's usual layout, and what is a view of another tensor has the layout that it would have;
    but parameters are returned themselves. The layout stays in an output that cannot be copied; if its dtype would
    stay, too, `Uncopied` is raised. `known` is as in `changed`.
    """
    import torch

    def restore(tensor: Any) -> Any:
        dtype = torch.float32 if tensor.dtype == half else tensor.dtype
        if inputs is not None and tensor.layout == torch.strided and not (tensor.is_nested or _is_usual(tensor)):
            if _is_laid_out(tensor, inputs) or (tensor._base is None and _is_part(tensor, inputs)):
                return tensor.to(dtype=dtype, memory_format=torch.contiguous_format, copy=True)
            if strides := _usual_strides(tensor, inputs):
                return tensor.new_empty_strided(tensor.shape, strides, dtype=dtype).copy_(tensor)
        return tensor.to(dtype)

    try:
        return in_place(output, restore, known)
    except Uncopied as error:
        if any(one.dtype == half for one in tensors(output)):
            raise Uncopied(output, "amp_dtype") from error
        return output


def entering(inputs: Any, named: Any, known: Known) -> tuple[Any, Any]:
    """The inputs of a call in channels_last. Images that require gradients are views, whose gradients reach the program
    in torch's usual layout. It is added to `known` that an output which is such a view is the input itself. If an input
    asks for channels_last, all are what they were.
    """
    given = [one for one in (*inputs, *named.values()) if getattr(one, "requires_grad", None) is True]
    if not given:
        return inputs, named
    import torch

    if not torch.is_grad_enabled() or any(map(asks_for_last, tensors((inputs, named)))):
        return inputs, named
    views = {}
    for one in given:
        if isinstance(one, torch.Tensor) and one.dim() > 2 and one.layout == torch.strided and not one.is_nested:
            view = one.view_as(one)
            if view.requires_grad:  # for a transform of torch.func that does not ask for its gradient it does not
                view.register_hook(lambda gradient: gradient if gradient is None else gradient.contiguous())
                views[id(one)], known[id(view)] = view, (view, one)
    changed_inputs = tuple(views.get(id(one), one) for one in inputs)
    return changed_inputs, {name: views.get(id(one), one) for name, one in named.items()}


def usual(output: Any) -> Any:
    """The output with copies of the tensors that were made in inference mode, which the program may use as it likes."""
    try:
        return in_place(output, lambda tensor: tensor.clone() if tensor.is_inference() else tensor)
    except Uncopied as error:
        raise Uncopied(output, "inference_mode") from error


def changed(
    output: Any,
    change: Callable[[Any], Any],
    known: Known | None = None,
    *,
    container: Callable[[Any], Any] = copy.copy,
) -> Any:
    """The output with every tensor changed, at any depth of tuples, lists, mappings, dataclasses and torch's
    distributions. What holds none that becomes another one is returned as it is, and what is in several places becomes
    one and the same, also in what else is changed with the same `known`. `container` gives what the changed ones are
    put into instead of a list, a mapping or an object. Raises `Uncopied` if a class takes no other tensors.

    Types are kept, named tuples among them, and so are attributes of tuples and tensors.
    """
    known = {} if known is None else known
    if type(output) in PLAIN:
        return output
    if id(output) not in known:
        known[id(output)] = output, _changed(output, change, known, container)
    return known[id(output)][1]


def in_place(output: Any, change: Callable[[Any], Any], known: Known | None = None) -> Any:
    """As `changed`, in the lists, mappings and objects themselves: an output may be one of the call's inputs, or one
    that the model goes on with.
    """
    return changed(output, change, known, container=lambda one: one)


def _changed(output: Any, change: Callable[[Any], Any], known: Known, container: Callable[[Any], Any]) -> Any:
    import torch

    if isinstance(output, torch.Tensor):
        new = change(output)
        return _with_attributes(new, output) if type(output) is torch.Tensor else new
    before = list(items(output))
    found = [(key, changed(one, change, known, container=container)) for key, one in before]
    new = [after for (_, was), after in zip(before, found, strict=True) if after[1] is not was]
    if not new:
        return output
    try:
        if isinstance(output, tuple):
            inside = [one for _, one in found]
            made = type(output)(*inside) if hasattr(output, "_fields") else type(output)(inside)
            return _with_attributes(made, output)
        return _filled(container(output), new)
    except Exception as error:
        raise Uncopied(output) from error


def _filled(container: Any, items: Collection[tuple[Any, Any]]) -> Any:
    for key, one in items:
        if isinstance(container, dict | list):
            container[key] = one
        else:
            object.__setattr__(container, key, one)
    return container


def _with_attributes(new: Any, output: Any) -> Any:
    """Copy the attributes that the program's code has given an output to its replacement, and return that."""
    if new is not output and (attributes := getattr(output, "__dict__", None)):
        vars(new).update(attributes)
    return new


def tensors(output: Any) -> Iterator[Any]:
    """Every tensor in an output, or among the inputs of a call."""
    import torch

    if isinstance(output, torch.Tensor):
        yield output
    else:
        for _, one in items(output):
            yield from tensors(one)


def leaves(output: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every tensor in an output with its place in it, as `[0]['codes']`. Numbers and lists of them are made tensors."""
    import torch

    numbers = output if isinstance(output, list | tuple) and output else [output]
    if isinstance(output, torch.Tensor):
        yield place, output
    elif all(isinstance(one, int | float | complex) for one in numbers):
        yield place, torch.tensor(output)
    else:
        for key, one in items(output):
            yield from leaves(one, f"{place}[{key!r}]")


def opaque(output: Any) -> str | None:
    """The class of something in an output that may hold tensors and is none of what is looked into; None without."""
    import torch

    if output is None or isinstance(output, torch.Tensor | bool | int | float | complex | str | bytes):
        return None
    inside = [one for _, one in items(output)]
    if not inside and not isinstance(output, tuple | list | dict):
        return type(output).__name__
    return next(filter(None, map(opaque, inside)), None)


def nodes_behind(outputs: Collection[Any]) -> set[Any]:
    """The nodes of an autograd graph."""
    waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
    known = set(waiting)
    while waiting and len(known) < MOST_NODES:
        for following, _ in waiting.pop().next_functions:
            if following is not None and following not in known:
                known.add(following)
                waiting.append(following)
    return known


def is_channels_last(tensor: Any) -> bool:
    """Whether a 4-d tensor's layout is channels_last and could not be the usual one as well."""
    import torch

    return not tensor.is_contiguous() and bool(tensor.is_contiguous(memory_format=torch.channels_last))


def _is_usual(tensor: Any) -> bool:
    return bool(tensor.is_contiguous()) and not asks_for_last(tensor)


def _is_laid_out(output: Any, inputs: Any) -> bool:
    """Whether an output is a 4-d tensor in channels_last, or several put together, and would not be without the
    setting.
    """
    import torch

    is_last = asks_for_last(output) and output.is_contiguous(memory_format=torch.channels_last)
    are_last = output.dim() > 4 and output._base is None and not output.is_contiguous()
    return (is_last or are_last) and not _is_the_programs(output, inputs)


def _is_part(output: Any, inputs: Any) -> bool:
    """Whether an output is a slice of such a tensor. Only its strides tell, where torch does not know the tensor."""
    if not asks_for_last(output) or not output.stride(0) >= output.stride(2) >= output.stride(3) > 1:
        return False
    return not _is_the_programs(output, inputs)


def _is_the_programs(output: Any, inputs: Any) -> bool:
    """Whether a layout stays: a parameter's, and any if an input asks for it."""
    import torch

    return isinstance(output, torch.nn.Parameter) or any(map(asks_for_last, tensors(inputs)))


def _usual_strides(output: Any, inputs: Any) -> list[int] | None:
    """The strides that a view of a tensor in channels_last would have without the setting. None if it is another, or
    has its dimensions in the order of memory: there it may as well be of what would have been copied, as by
    `permute(0, 2, 3, 1).contiguous()`.
    """
    base, steps = output._base, list(zip(output.shape, output.stride(), strict=True))
    ordered = [step for size, step in steps if size > 1]
    if 0 in ordered or ordered == sorted(ordered, reverse=True):
        return None
    if base is None or base.dtype != output.dtype or base.dim() != 4:
        return None
    if not is_channels_last(base) or _is_the_programs(base, inputs):
        return None
    _, channels, height, width = base.shape

    def usual_step(step: int) -> int:
        pixels, channel = divmod(step, channels)
        image, pixel = divmod(pixels, height * width)
        return int((image * channels + channel) * height * width + pixel)

    found = [usual_step(step) for _, step in steps]
    first = output.storage_offset() - base.storage_offset()
    last = usual_step(first) + sum((size - 1) * step for (size, _), step in zip(steps, found, strict=True))
    # Otherwise a dimension goes from one pixel's channels on to the next pixel.
    return found if usual_step(first + sum((size - 1) * step for size, step in steps)) == last else None


def asks_for_last(tensor: Any) -> bool:
    """Whether a tensor has the strides that have torch's operators return channels_last, as with a single channel."""
    import torch

    if tensor.dim() != 4 or tensor.layout != torch.strided or tensor.is_nested:
        return False
    return bool(tensor.stride(1) == 1 < tensor.stride(2))


def _is_plain(found: Collection[Any]) -> bool:
    return len(found) >= LONG and PLAIN.issuperset(map(type, found))


def items(output: Any) -> Iterator[tuple[Any, Any]]:
    """The elements of an output or an input in which tensors may be, with their keys."""
    if isinstance(output, dict):
        if not _is_plain(output.values()):
            yield from output.items()
    elif isinstance(output, list | tuple):
        if not _is_plain(output):
            yield from enumerate(output)
    elif is_dataclass(output) and not isinstance(output, type):
        yield from ((field.name, getattr(output, field.name, None)) for field in fields(output))
    elif type(output) not in PLAIN:
        from torch.distributions import Distribution, Transform

        # A transform may keep the last tensor that it made, with what it made it from.
        if isinstance(output, Distribution | Transform):
            yield from vars(output).items()

"""A model's outputs, as they would be without mixed precision, channels_last and inference mode."""

from typing import Any

from ._outputs import Known, Uncopied, in_place, tensors


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

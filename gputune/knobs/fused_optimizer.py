"""One kernel for a whole optimizer step: `torch.optim.AdamW(..., fused=True)`.

torch's default updates parameters in groups (`foreach`), with several kernels for each and a copy of their size in
memory. The fused form exists for SGD, Adam and AdamW and sums in another order.

Where all networks together gain by it, or one does and none is slower, each kind has it, unless its own steps are
certainly slower with it, or by more than 3 %: what lies close to 1 would be chosen in one probe and not in the next.

Source: PyTorch, "torch.optim" documentation.
"""

import copy
import weakref
from collections.abc import Callable
from typing import Any

from . import Need, Numerics, Obstacle, Phase, Root, Stage, Value, given
from ._memory import other_users

VALUE = bool
DEFAULT = False
PHASE: Phase = "code"
USE = "torch.optim.AdamW(model.parameters(), **tuning.optimizer_kwargs())"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability", "torch")
STAGE: Stage = "options"
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("training",)
SPARES_HOST = True
IN_CALLS = False

KINDS = ("Adam", "AdamW", "SGD")
"""The classes with a fused form on every device, exactly: a subclass may step in its own way. Each element steps by
itself, so that a slice of a parameter steps as the whole does."""
OPTIONS = ("fused", "foreach", "capturable", "differentiable")
"""The arguments by which a program chooses the form of a step."""
NUMBERS = ("lr", "momentum", "dampening", "weight_decay", "eps")
SWITCHES = ("nesterov", "amsgrad", "maximize")
GAPS = "a weight of its is a view with gaps into a larger tensor"
_ours: "weakref.WeakKeyDictionary[Any, Callable[[str, str], None]]" = weakref.WeakKeyDictionary()
"""The optimizers that were fused here, and what is called where one fails later."""
_looks: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
"""The keys of the hooks that look at gradients before a step of theirs."""
_at_rest: "weakref.WeakSet[Any]" = weakref.WeakSet()
"""The optimizers fused here that step in torch's own form for the time being."""


def obstacle(root: Root, value: Value) -> Obstacle | None:
    if not root.optimizers:
        return Obstacle("no optimizer of torch's has trained it so far")
    if any(getattr(layer, "sparse", False) is True for layer in root.model.modules()):
        return Obstacle("its gradients are sparse")  # also where such a layer had no gradient yet
    obstacles = [_obstacle(optimizer, root.device) for optimizer in root.optimizers]
    return None if None in obstacles else obstacles[0]


def turn_on(root: Root, value: Value) -> Value:
    """Switch the fused form on in running optimizers. Its state counts steps on the parameters' device, where the other
    forms count them on the CPU. A state_dict, a deep copy and a pickle hold neither that nor the option, so that a
    program without gputune loads them as its own.
    """
    for optimizer in root.optimizers:
        if optimizer in _at_rest:
            _at_rest.remove(optimizer)
            _fuse(optimizer)
        elif optimizer not in _ours and _obstacle(optimizer, root.device) is None:
            _hook_up(optimizer, root.failed)
            _fuse(optimizer)
            root.patch("optimizer_saved", _saved, _copied)
            root.patch("optimizer_stepping", _look_last)
    return True


def turn_off(root: Root) -> None:
    for optimizer in root.optimizers:
        if optimizer in _ours and optimizer not in _at_rest:
            _at_rest.add(optimizer)
            _unfuse(optimizer)


def _obstacle(optimizer: Any, device: str) -> Obstacle | None:
    import torch

    if optimizer in _ours:
        return None
    kind, groups = type(optimizer), optimizer.param_groups
    if kind not in [getattr(torch.optim, name) for name in KINDS]:
        return Obstacle(f"{kind.__name__} is none of torch's {', '.join(KINDS)}")
    own = [(name, value) for name in OPTIONS for group in groups if (value := group.get(name)) not in (None, False)]
    own += [(name, False) for name in ("fused", "foreach") if optimizer.defaults.get(name) is False]
    if own:
        return Obstacle(given(*own[0]), users=True)
    parameters = [one for group in groups for one in group["params"]]
    devices = {one.device for one in parameters}
    if [one.type for one in devices] != [device] or any(one.dtype != torch.float32 for one in parameters):
        return Obstacle("its parameters are not all FP32 on one device")
    if any(one.grad is not None and one.grad.layout != torch.strided for one in parameters):
        return Obstacle("its gradients are sparse")
    return None if all(map(is_dense, parameters)) else Obstacle(GAPS)


def _fuse(optimizer: Any) -> None:
    import torch

    if optimizer in _at_rest or optimizer not in _ours:
        return
    for group in optimizer.param_groups:
        if group.get("foreach") is None:
            group["fused"] = True
    for parameter, state in optimizer.state.items():
        if "step" in state:
            state["step"] = torch.as_tensor(state["step"], dtype=torch.float32).to(parameter.device)


def _unfuse(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        if group.get("foreach") is None:
            group["fused"] = None
    optimizer.state.update(_counted_on_cpu(dict(optimizer.state)))


def _unfused(optimizer: Any, saved: dict[str, Any]) -> dict[str, Any]:
    groups = [{**group, "fused": None} for group in saved["param_groups"]]
    return {**saved, "param_groups": groups, "state": _counted_on_cpu(saved["state"])}


def _saved(optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
    return _unfused(optimizer, state) if optimizer in _ours else state


def _copied(optimizer: Any, other: Any) -> Any:
    """The shallow copy `other`, which has the same groups and state, and so the same form."""
    if optimizer in _ours:
        _hook_up(other, _ours[optimizer])
    return other


def _hook_up(optimizer: Any, failed: Callable[[str, str], None]) -> None:
    _ours[optimizer] = failed
    optimizer.register_load_state_dict_post_hook(_fuse)
    optimizer.register_state_dict_post_hook(_unfused)
    _looks[optimizer] = optimizer.register_step_pre_hook(_guarded(failed)).id


def _look_last(optimizer: Any) -> None:
    """Have the look come after hooks that the program registered later, which may exchange gradients. torch goes
    through an optimizer's own hooks after those of all optimizers, of which this is one.
    """
    hooks = optimizer._optimizer_step_pre_hooks
    if (look := _looks.get(optimizer)) in hooks:
        hooks.move_to_end(look)


def _guarded(failed: Callable[[str, str], None]) -> Callable[..., Any]:
    """A hook before each step, which turns the fused form off if it could not make the step, and torch's could."""

    def look(optimizer: Any) -> None:
        if is_fused(optimizer, here=True) and (why := _misfit(optimizer)):
            _unfuse(optimizer)
            _ours.pop(optimizer, None)
            vars(optimizer).pop("found_inf", None)  # which only the fused form takes
            failed("fused_optimizer", why)

    def before_step(optimizer: Any, inputs: Any, named: Any) -> Any:
        closure = inputs[1] if len(inputs) > 1 else named.get("closure")
        if closure is None:
            return look(optimizer)

        def looked_at() -> Any:
            loss = closure()
            look(optimizer)
            return loss

        if len(inputs) > 1:
            return (inputs[0], looked_at, *inputs[2:]), named
        return inputs, {**named, "closure": looked_at}

    return before_step


def is_fused(optimizer: Any, *, here: bool) -> bool:
    """Whether an optimizer has the fused form from here, or from the program."""
    return (optimizer in _ours) is here and any(group.get("fused") for group in optimizer.param_groups)


def _misfit(optimizer: Any) -> str | None:
    """Return why the fused form cannot make an optimizer's next step, or None; state that it lacks is created."""
    states = {id(one): state for one, state in optimizer.state.items()}  # a tensor's own hash is slow
    stepped = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
    gradients = [one.grad for one in stepped]
    unfit = _odd_option(optimizer.param_groups) or _unfit(gradients)
    return unfit or _laid_out(stepped, gradients, states) or _momenta(optimizer, states)


def _odd_option(groups: list[dict[str, Any]]) -> str | None:
    """An option that the fused form's kernel does not take: torch's other forms compute with any number."""
    import torch

    usual = (float, int, torch.Tensor)
    for group in groups:
        odd = [name for name in NUMBERS if not isinstance(group.get(name, 0.0), usual)]
        odd += [name for name in SWITCHES if type(group.get(name, False)) is not bool]
        if odd:
            return f"its {odd[0]} became an object of the class {type(group[odd[0]]).__name__}"
    return None


def _unfit(gradients: list[Any]) -> str | None:
    import torch

    strided, single = torch.strided, torch.float32
    for gradient in gradients:
        if gradient.layout != strided:
            return "its gradients became sparse"
        if gradient.dtype != single:
            return f"its gradients became {str(gradient.dtype).removeprefix('torch.')}"
    return None


def _laid_out(stepped: list[Any], gradients: list[Any], states: dict[int, dict[str, Any]]) -> str | None:
    """Bring gradients and the optimizer's state into their weights' layout, or say why that cannot be: the fused form
    goes through memory and not by strides, and a weight or its gradient may have got other memory since the last step.
    """
    import torch

    tensors = [value for state in states.values() for value in state.values() if isinstance(value, torch.Tensor)]
    if all(map(torch.Tensor.is_contiguous, stepped + gradients + tensors)):
        return None
    if not all(map(is_dense, stepped)):
        return GAPS
    if any(not _is_laid_as(one, one.grad) and other_users([one.grad], "gradients") for one in stepped):
        return "a gradient has another layout than its weight, and something else uses the gradient's memory"
    for parameter in stepped:
        _lay_as(parameter, states.get(id(parameter), {}))
    return None


def _momenta(optimizer: Any, states: dict[int, dict[str, Any]]) -> str | None:
    """Make the momentum of parameters that get their first gradient after others of their group, which torch's fused
    SGD does not. Zeros become the gradient in the step, as the first momentum is, but for a dampening.
    """
    import torch

    have = {key for key, state in states.items() if state.get("momentum_buffer") is not None}
    for group in optimizer.param_groups:
        if not (group["fused"] and group.get("momentum")):
            continue
        stepped = [one for one in group["params"] if one.grad is not None]
        late = [one for one in stepped if id(one) not in have]
        if len(late) in (0, len(stepped)):
            continue
        if group["dampening"]:
            return "a parameter got its first gradient after others, and there is a dampening"
        for parameter in late:
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return None


def is_dense(one: Any) -> bool:
    """Whether a tensor fills its part of memory, each place once, in any order."""
    expected = 1
    for stride, size in sorted(zip(one.stride(), one.shape, strict=True)):
        if size != 1 and stride != expected:
            return bool(one.numel() == 0)
        expected *= size
    return True


def _is_laid_as(parameter: Any, one: Any) -> bool:
    if one.stride() == parameter.stride():
        return True
    sizes = zip(one.shape, one.stride(), parameter.stride(), strict=True)
    return all(size == 1 or left == right for size, left, right in sizes)


def _lay_as(parameter: Any, state: dict[str, Any]) -> None:
    """Bring the gradient and the optimizer's state into the parameter's layout."""
    import torch

    if not _is_laid_as(parameter, parameter.grad):
        parameter.grad.data = torch.empty_like(parameter).copy_(parameter.grad)
    for name, value in state.items():
        if isinstance(value, torch.Tensor) and value.shape == parameter.shape and not _is_laid_as(parameter, value):
            state[name] = torch.empty_like(parameter).copy_(value)


def _counted_on_cpu(states: dict[Any, Any]) -> dict[Any, Any]:
    """All counts are copied at once: one at a time would wait for the device for every parameter. Those of a group that
    was added later are on the CPU already.
    """
    import torch

    counted = [key for key, state in states.items() if isinstance(state.get("step"), torch.Tensor)]
    if not counted:
        return states
    device = states[counted[0]]["step"].device
    steps = torch.stack([states[key]["step"].to(device) for key in counted]).cpu()
    others = copy.copy(states)  # which keeps its type
    others.update({key: {**states[key], "step": step.clone()} for key, step in zip(counted, steps, strict=True)})
    return others

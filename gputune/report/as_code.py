"""Writes the settings of a profile as lines of Python, for users who would rather edit their script than start it with
`gputune apply`.

The lines assume a script's own `model`, `optimizer`, `inputs`, `targets`, `loss_function` and `dataset`.
"""

from collections.abc import Callable, Iterable, Mapping

from gputune import knobs
from gputune.host.stderr import one_line
from gputune.knobs import Value, is_default
from gputune.profile import Profile
from gputune.runtime import advising
from gputune.runtime.deciding import Terms

Values = Mapping[str, Value]
ALL = Terms(numerics="mixed", inject=True, inject_dataloader=True)
SDPA = {"flash": ("cudnn",), "efficient": ("cudnn", "flash"), "math": ("cudnn", "flash", "mem_efficient")}
"""The back ends of attention that are switched off so that another comes first."""


def _sdpa(value: Value) -> str:
    if value == "cudnn":
        return "torch._C._set_sdp_priority_order([3, 1, 2, 0])  # cuDNN first, from torch 2.6 on"
    return "\n".join(f"torch.backends.cuda.enable_{name}_sdp(False)" for name in SDPA[str(value)])


FLAGS: Mapping[str, Callable[[Value], str]] = {
    "cudnn_benchmark": lambda value: f"torch.backends.cudnn.benchmark = {value}",
    "cudnn_tf32": lambda value: f"torch.backends.cudnn.allow_tf32 = {value}",
    "omp_threads": lambda value: f"torch.set_num_threads({value})",
    "matmul_precision": lambda value: (
        f'torch.set_float32_matmul_precision("{"high" if value == "tf32" else "highest"}")'
    ),
    "sdpa_backend": _sdpa,
}
"""The line for each setting that is a flag of torch's, or that can be set in a running process."""

ARGUMENTS = {
    "dataloader_workers": "num_workers",
    "dataloader_prefetch_factor": "prefetch_factor",
    "dataloader_pin_memory": "pin_memory",
}


def text(profile: Profile) -> str:
    """Blocks of lines: for every script, for each kind of network with something to do, and for each tuned program."""
    advice = advising.advice(profile, profile.fingerprint, ALL)
    values = {name: choice.value for name, choice in profile.settings.items()}
    kinds = [(f"Models of the kind {family}", own) for family, own in advice.families.items()]
    kinds += [("Models of any other kind" if kinds else "Any model", advice.general)]
    parts = [_block(f"Every script, measured on {profile.fingerprint.device}", _start(values))]
    parts += [_block(name, _model(own, advice.device)) for name, own in kinds]
    if advice.loading:
        parts += [_block("A DataLoader", _loader(advice.loading.choices))]
    for program in advice.programs:
        models = ", ".join(name for name, _ in program.models) or "no model"
        loader = _loader(program.loading.choices) if program.loading else []
        lines = [*_flags(program.settings), *loader, *_model(program.settings, advice.device)]
        parts.append(_block(f"{program.entry} ({models}), as tuned", lines))
    return "\n".join(filter(None, parts))


def _block(title: str, lines: Iterable[str]) -> str:
    """The title comes from the file in part, and stays a comment whatever it is."""
    body = "".join(f"{line}\n" for line in lines)
    return f"# {one_line(title)}\n{body}" if body else ""


def _start(values: Values) -> list[str]:
    chosen = {knobs.load(name): value for name, value in values.items()}
    exported = [one.environ(value) for one, value in chosen.items() if one.PHASE == "launch" and value]
    variables = [f'os.environ.setdefault("{name}", "{value}")' for each in exported for name, value in each.items()]
    flags = _flags({name: value for name, value in values.items() if knobs.load(name).PHASE != "launch"})
    return [*(["import os", "", *variables, ""] if variables else []), "import torch", "", *flags]


def _flags(values: Values) -> list[str]:
    return [
        line(values[name])
        for name, line in FLAGS.items()
        if name in values and values[name] not in (None, knobs.load(name).DEFAULT)
    ]


def _model(values: Values, device: str) -> list[str]:
    values = {name: value for name, value in values.items() if not is_default(knobs.load(name), value)}
    if not values:
        return []
    lines = {
        "channels_last": "model = model.to(memory_format=torch.channels_last)",
        "compile": "model.compile()",
        "fused_optimizer": "optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # likewise Adam and SGD",
    }
    chosen = [line for name, line in lines.items() if values.get(name)]
    others = [
        knobs.load(name).USE for name in knobs.in_models() if name in values.keys() - lines.keys() - {"amp_dtype"}
    ]
    return [f'model = model.to("{device}")', *chosen, *_step(values.get("amp_dtype"), device), *others]


def _step(dtype: Value, device: str) -> list[str]:
    """The forward and backward pass in mixed precision; float16 needs a scaler of the loss."""
    if not dtype:
        return []
    forward = [
        f'with torch.autocast("{device}", dtype=torch.{dtype}):',
        "    loss = loss_function(model(inputs), targets)",
    ]
    if dtype != "float16":
        return [*forward, "loss.backward()"]
    steps = ["scaler.scale(loss).backward()", "scaler.step(optimizer)", "scaler.update()"]
    return [f'scaler = torch.amp.GradScaler("{device}")  # once, before the training loop', *forward, *steps]


def _loader(choices: Values) -> list[str]:
    given = ", ".join(f"{word}={choices[name]}" for name, word in ARGUMENTS.items() if choices.get(name) is not None)
    return [f"loader = torch.utils.data.DataLoader(dataset, {given})"]

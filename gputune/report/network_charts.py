"""Charts of the parts of networks, which are convolutions and attention, and of whole training steps."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from gputune.advice import Choice, _training, _training_rows
from gputune.advice._evidence import select
from gputune.advice._training_rows import (
    FLAGS,
    MIXED,
    Steps,
    combination_of,
    precision_of,
    with_precision,
    without_options,
)
from gputune.advice.sdpa_backend import Workload
from gputune.knobs import value_text
from gputune.measurement import Measurement
from gputune.profile import Profile
from gputune.report.charts import STAR, Bar, Cell, Chart, Mark, Picture, mark, number, rate, ratio, ratio_mark, rows
from gputune.search.combination import DEFAULT, Combination, traits

SETTINGS = ("amp_dtype", "matmul_precision", *FLAGS)
IMAGES = "convnet"
"""The reference network that has convolutions, which channels_last and cuDNN's own search concern."""


def convolutions(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """3x3 forward passes with cuDNN's own choice of algorithm; in each dtype the fastest first."""
    pairs: dict[tuple[str, str], dict[bool, Measurement]] = {}
    for row in rows(measurements, "conv throughput", "dtype kernel pass", "channels"):
        if (row.params["kernel"], row.params["pass"]) == ("3x3", "forward") and not row.params.get("cudnn_benchmark"):
            out = f" -> {row.params['out']}" if "out" in row.params else ""
            pair = pairs.setdefault((str(row.params["dtype"]), f"{row.params['channels']}{out}"), {})
            pair[bool(row.params.get("channels_last"))] = row
    if not pairs:
        return
    order = list(dict.fromkeys(dtype for dtype, _ in pairs))
    best = {name: max(row.median for row in pair.values()) for name, pair in pairs.items()}
    ranked = sorted(pairs, key=lambda name: (order.index(name[0]), -best[name]))
    yield Chart(
        title="Convolutions 3x3, forward, in TFLOP/s (NHWC: channels_last)",
        columns=("dtype", "channels", "", "NCHW", "NHWC", "NHWC to NCHW"),
        numbers=("channels", "NCHW", "NHWC"),
        rows=[(*name, Bar(value=best[name], most=max(best.values())), *_formats(pairs[name])) for name in ranked],
        pictures=tuple(
            Picture(
                name=dtype,
                unit="TFLOP/s",
                rows={f"{name[1]} channels": _format_marks(pairs[name]) for name in ranked if name[0] == dtype},
            )
            for dtype in order
        ),
    )


def _formats(pair: Mapping[bool, Measurement]) -> tuple[str, str, str]:
    medians = [number(pair[last].median) if last in pair else "" for last in (False, True)]
    return medians[0], medians[1], ratio(pair[True], pair[False]) if len(pair) == 2 else ""


def _format_marks(pair: Mapping[bool, Measurement]) -> tuple[Mark, ...]:
    return tuple(mark(pair[last], name) for last, name in ((False, "NCHW"), (True, "NHWC")) if last in pair)


def attention(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    charts: dict[tuple[str, str], dict[str, dict[str, Measurement]]] = {}
    for row in rows(measurements, "attention throughput", "dtype backend", "head length"):
        if shape := Workload.of(row.params):
            shapes = charts.setdefault((shape.dtype, ", causal" if shape.causal else ""), {})
            shapes.setdefault(f"{shape.head} x {shape.length}", {})[str(row.params["backend"])] = row
    for (dtype, causal), shapes in charts.items():
        yield Chart(
            title=f"Attention in {dtype}{causal}: back ends, fastest first, to torch's own choice",
            columns=("head x length", "", ""),
            rows=[line for shape, backends in shapes.items() for line in _backends(shape, backends)],
            pictures=(Picture(unit="TFLOP/s", rows={shape: _backend_marks(found) for shape, found in shapes.items()}),),
        )


def _backends(shape: str, backends: Mapping[str, Measurement]) -> list[tuple[Cell, ...]]:
    default = backends.get("default")
    others = sorted((name for name in backends if name != "default"), key=lambda name: -backends[name].median)
    cells = [f"{name} {ratio(backends[name], default) or rate(backends[name])}" for name in others]
    firsts = [shape, f"{number(default.median)} TFLOP/s" if default else ""]
    return [line for line in zip_longest(firsts, cells[::2], cells[1::2], fillvalue="") if any(line)]


def _backend_marks(backends: Mapping[str, Measurement]) -> tuple[Mark, ...]:
    ordered = sorted(backends, key=lambda name: name != "default")
    return tuple(mark(backends[name], "torch's own choice" if name == "default" else name) for name in ordered)


def training(profile: Profile) -> Iterator[Chart]:
    """The groups were measured one after the other, so each has ratios of its own: the first to torch's defaults, the
    second to the same precision and memory format without options. The star is on what the profile's choices are.
    """
    known = readable(profile.measurements)
    for network in _training_rows.families(known):
        rates, options = (_training_rows.steps(known, network, stage) for stage in ("precision", "options"))
        choices, refused = choices_of(profile, network), _training_rows.refusals(known, network)
        is_known = not any(choices[name].provisional for name in _concerning(choices, network))
        best = combination_chosen(choices, network) if is_known else None
        memory, batch = _memory(known, network), next(iter(rates.values())).params["batch"]
        lines: list[tuple[Cell, ...]] = [
            (_star(tried, best), _name(tried) + (", refused" if precision_of(tried) in refused else ""),
             _milliseconds(row), ratio(row, rates.get(DEFAULT)), memory.get(tried, ""))
            for tried, row in _ranked(rates)
        ]  # fmt: skip
        lines += _options(options, best)
        if best is not None and best not in (*rates, *options):
            lines.append((STAR, f"{_name(best)}, which was not measured", "", "", ""))
        yield Chart(
            title=f"Training steps: {network}, batch {batch}",
            star="recommended" if best else "",
            columns=("", "", "ms", "to the default", "MiB"),
            numbers=("ms", "MiB"),
            rows=[*lines, *(("", f"  ({note})", "", "", "") for note in _notes(known, network, choices))],
            pictures=tuple(_bars(known, network, best, refused)),
        )


def choices_of(profile: Profile, network: str) -> Mapping[str, Choice]:
    return {**profile.settings, **profile.families.get(network, {})}


def combination_chosen(choices: Mapping[str, Choice], network: str, names: Sequence[str] = SETTINGS) -> Combination:
    """What a network has of the settings `names`; those of images only if it has any."""
    values = {name: choices[name].value for name in _concerning(choices, network, names)}
    exact = "tf32" if values.get("matmul_precision") == "tf32" else "float32"
    precision = str(values["amp_dtype"]) if values.get("amp_dtype") in MIXED else exact
    return with_precision(Combination.of({name: True for name in FLAGS if values.get(name) is True}), precision)


def _concerning(choices: Mapping[str, Choice], network: str, names: Sequence[str] = SETTINGS) -> list[str]:
    known = [name for name in names if name in choices]
    return [name for name in known if network == IMAGES or "images" not in traits(name).needs]


def _star(tried: Combination, best: Combination | None) -> str:
    return STAR if tried == best else ""


def _notes(known: Sequence[Measurement], network: str, choices: Mapping[str, Choice]) -> Iterator[str]:
    """Why the star is not where these rows alone would put it, or why there is none."""
    options, worth = _training_rows.steps(known, network, "options"), _training.options(known, network)
    own = {name: choices[name] for name in _concerning(choices, network)}
    searches = "cudnn_benchmark" in own and own["cudnn_benchmark"].value is True
    if len(worth) < len(options) and not searches:
        yield "cudnn_benchmark was not worth it"
    fused = own.get("fused_optimizer")
    if fused and fused.value and not fused.since and _training.has_fused_like_all(known, network):
        yield "fused_optimizer, since it is on for all networks"
    differs = _training.best(known, network) != combination_chosen(choices, network)
    for name, choice in own.items():
        if choice.since and differs:
            yield f"{name} {value_text(choice.value)} stands since {choice.since[:10]}"
    if waiting := [name for name, choice in own.items() if choice.provisional]:
        yield f"provisional: {', '.join(waiting)}"


def _bars(
    known: Sequence[Measurement], network: str, best: Combination | None, refused: Container[str]
) -> Iterator[Picture]:
    for stage in ("precision", "options"):
        rates = _training_rows.steps(known, network, stage)
        if not rates:
            continue
        alone = DEFAULT if stage == "precision" else without_options(next(iter(rates)))
        marks = {
            _beside(tried, alone, stage): (replace(one, chosen=tried == best, refused=precision_of(tried) in refused),)
            for tried, row in _ranked(rates)
            if (one := ratio_mark(row, rates.get(alone), f"{_milliseconds(row)} ms"))
        }
        name = "precision" if stage == "precision" else f"options on {_name(alone)}"
        yield Picture(name=name, unit="times as fast", rows=marks, base=1.0)


def _beside(tried: Combination, alone: Combination, stage: str) -> str:
    if stage == "precision":
        return _name(tried)
    options = tried.beyond(alone).values
    return f"+ {' '.join(options)}" if options else "alone"


def _options(rates: Steps, best: Combination | None) -> Iterator[tuple[Cell, ...]]:
    if not rates:
        return
    alone = without_options(next(iter(rates)))
    yield "", f"options on {_name(alone)}:", "", "to it alone", ""
    for tried, row in _ranked(rates):
        name = f"  {_beside(tried, alone, 'options')}"
        yield _star(tried, best), name, _milliseconds(row), ratio(row, rates.get(alone)), ""


def readable(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The rows of training steps that `_training_rows` can read; rows of a file may be of another version."""
    complete = [
        *rows(measurements, "training_step throughput", "network stage", "batch"),
        *rows(measurements, "training_step peak_memory", "network stage", "batch"),
        *rows(measurements, "training_step final_loss", "network precision", "steps first_loss"),
    ]
    known = [row for row in complete if row.params["network"] in _training_rows.FAMILIES]
    return [row for row in known if combination_of(row.params) is not None]


def _memory(known: Sequence[Measurement], network: str) -> dict[Combination | None, str]:
    peaks = select(known, _training_rows.BENCH, "peak_memory", network=network, stage="precision")
    return {combination_of(row.params): number(row.median) for row in peaks}


def _ranked(rates: Steps) -> list[tuple[Combination, Measurement]]:
    return sorted(rates.items(), key=lambda pair: -pair[1].median)


def _name(combination: Combination) -> str:
    flags = [name for name in combination.values if name in _training_rows.FLAGS]
    return " ".join([precision_of(combination), *flags])


def _milliseconds(row: Measurement) -> str:
    return number(1000 * float(row.params["batch"]) / row.median)

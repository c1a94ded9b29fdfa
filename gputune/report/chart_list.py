"""The list of charts, for the terminal and for the page."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from gputune.measurement import Measurement
from gputune.profile import Profile
from gputune.report import loading_charts, matmul_charts, network_charts, programs
from gputune.report.charts import Chart

CHARTS: Mapping[str, tuple[Callable[[Sequence[Measurement]], Iterator[Chart]], ...]] = {
    "All GPUs side by side": (matmul_charts.side_by_side,),
    "Matmul": (
        matmul_charts.dtypes, matmul_charts.peak, matmul_charts.truth, matmul_charts.alignment, matmul_charts.shapes,
    ),
    "Convolutions": (network_charts.convolutions,),
    "Attention": (network_charts.attention,),
}  # fmt: skip
"""By subject, what is drawn of measurements alone."""
OF_CHOICES: Mapping[str, Callable[[Profile], Iterator[Chart]]] = {
    "Loading data": loading_charts.workers,
    "Networks": network_charts.training,
}
"""What also marks the profile's choices. The most important come last, next to the answer of a terminal; a page
reverses the groups."""


def groups(profile: Profile) -> Iterator[tuple[str, list[Chart]]]:
    for title, makers in CHARTS.items():
        if charts := [chart for make in makers for chart in make(profile.measurements)]:
            yield title, charts
    for title, make_of in OF_CHOICES.items():
        if charts := list(make_of(profile)):
            yield title, charts
    for program in profile.programs:
        if charts := list(programs.charts(program)):
            yield f"Your program {program.entry}", charts

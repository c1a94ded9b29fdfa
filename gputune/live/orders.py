"""The messages of a tune: the orders to each process of a program, and what it answers.

A process says `Hello` once it has taken its first steps, and then what it found, or `Done`. From then on it gets one
order after the other, and gives each order's own answer.
"""

import json
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Generic, Literal, Self, TypeVar, get_args

from ..knobs import Value
from .models import ModelKey
from .records import Recorded

Role = Literal["measure", "guard", "time"]
"""The purpose of a run: to time settings in turn, to record losses, or to time steps as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The purpose of a run of a program that is being tuned, and what its processes need for it. It travels in
    GPUTUNE_TUNE.
    """

    role: Role
    socket: str
    """The path of the Unix socket on which gputune listens."""
    scratch: str = ""
    """The folder that takes what is written, instead of the user's; empty to let it be written."""
    namespace: str = ""
    """A file with the name of the mount namespace whose processes run above copies of the user's folders, so that
    nothing of theirs is redirected; empty if there is none."""
    unchanged: tuple[str, ...] = ()
    """Folders that are written to all the same: caches, and the temporary folder."""
    written: str = ""
    """A file that takes the names of what is written to the user's folders."""
    shift: int | None = None
    """By how much random seeds are shifted; None to leave them alone."""
    trains: bool | None = None
    """Whether the program is known to take an optimizer's steps, before which its calls without gradients are none of
    its steps; None where that is to be found out."""
    other_numbers: bool = False
    """Whether dropout draws other random numbers in the iteration that is compared."""

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValueError(f"there is no role {self.role}")

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises TypeError or ValueError for another text than `text`."""
        return cls(**json.loads(text))


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A process, and its place among the ranks of the program."""

    pid: int
    entry: str
    """The name by which a tuned program knows its script."""
    torch: str
    device: str
    """The type of device that the program is tuned for: cuda or cpu."""
    rank: int
    world: int
    """How many ranks there are; `local` of them are on this machine."""
    local: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a measuring run found in the program's first steps."""

    trains: bool
    """Whether its steps are an optimizer's; otherwise they are calls without gradients."""
    models: tuple[ModelKey, ...]
    families: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of the tensors that the models were called with."""
    images: bool
    """Whether any model has 2-d convolutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    reasons: dict[str, str]
    """By setting, why it cannot be tried in this program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderDescribed:
    """The DataLoader that was asked last."""

    batches: int | None = None
    """The batches of an epoch; None if it has no length."""
    batch_bytes: int = 0
    dataset: str | None = None
    """The class of its dataset, as `loader.dataset_class`."""
    obstacle: str | None = None
    """Why other numbers of workers cannot be tried: None if they can, empty if there is no loader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTimed:
    """How long the steps of a block took together, by the clock of the GPU if there is one."""

    seconds: float
    peak_bytes: int | None
    """The peak of the memory that the process had allocated on the GPU meanwhile; None without a GPU."""
    waited: float = 0.0
    """For how many seconds the program waited for its DataLoader."""
    compiled: int = 0
    """How many graphs were compiled meanwhile; if there are any, the time tells nothing."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < inf:
            raise ValueError("the seconds of a block must be above 0 and finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsTraced:
    seconds: tuple[float | None, ...]
    """For each trace, how long the GPU worked for one step; None if nothing could be traced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsCompared:
    """How far outputs with some settings are from those without, for the same inputs."""

    calls: int = 0
    """How many calls had outputs that could be compared."""
    error: float = 0.0
    """The largest relative error of any output."""
    spread: float = 0.0
    """The largest relative error between two calls without the settings."""
    finite: bool = True
    """Whether all numbers are finite that are so without the settings."""
    alike: bool = True
    """Whether the outputs are as many as without the settings, and of the same shapes."""
    rows: int = 0
    """In how many rows the largest element without the settings is clearly so."""
    agreeing: int = 0
    """In how many of these rows it is the same element with the settings."""
    labels: int = 0
    """How many whole numbers were compared, as labels are."""
    same_labels: int = 0
    failed: str = ""
    """Why a comparison failed; empty if none did."""


@dataclass(frozen=True, slots=True)
class Done:
    """The first step has passed, or what was ordered is done, and there is nothing more to say."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A step has passed, and the answer to the order may come as much later."""


@dataclass(frozen=True, slots=True)
class OnlyCalls:
    """The program has an optimizer that has taken no step, and calls its models without gradients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsWithGradients:
    """The program has called its models so many times with gradients on, and has begun no backward pass and no step."""

    count: int


@dataclass(frozen=True, slots=True)
class Trains:
    """An optimizer steps after calls without gradients that were taken for the program's steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The program ends by itself, or waits for its end if `at_data_end`: it calls its models without gradients, and the
    DataLoader that feeds these calls has ended.
    """

    steps: int
    """How many steps, or calls without gradients, it has made in all."""
    at_data_end: bool = False
    may_train: bool = False
    """Whether it has made a DataLoader that shuffles and was not asked yet, as one that trains after an evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """The program raised an exception, and the process ends."""

    text: str
    out_of_memory: bool


class Order(Generic[Answer]):
    __slots__ = ()

    @classmethod
    def answer(cls) -> type[Answer]:
        kind: type[Answer] = get_args(vars(cls)["__orig_bases__"][0])[0]
        return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class FindObstacles(Order[Obstacles]):
    candidates: dict[str, Value]


@dataclass(frozen=True, slots=True)
class DescribeLoader(Order[LoaderDescribed]): ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBlock(Order[BlockTimed]):
    """Time steps. A measuring run first switches to these settings and lets steps pass."""

    steps: int
    values: dict[str, Value] = field(default_factory=dict)
    workers: int | None = None
    """The number of the DataLoader's workers; None for the program's own."""
    settle: int = 0
    """The least steps that pass untimed; more do as long as they compile something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSteps(Order[StepsTraced]):
    """Trace steps with the settings that are on, more than once."""

    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOutputs(Order[OutputsCompared]):
    """Compare the outputs of the next calls with those that the same inputs have with torch's defaults."""

    values: dict[str, Value]
    calls: int
    explained: float
    """The relative error that the precision of the settings explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Order[Recorded]):
    """Record the run up to this step, counted from its start."""

    steps: int


@dataclass(frozen=True, slots=True)
class End(Order[Done]):
    """Flush what was written. At the second `End`, when all ranks have flushed, exit."""


AnyOrder = FindObstacles | DescribeLoader | TimeBlock | TraceSteps | CompareOutputs | Record | End
_Answers = Obstacles | LoaderDescribed | BlockTimed | StepsTraced | OutputsCompared | Recorded | Done
Message = Hello | Found | Passed | OnlyCalls | CallsWithGradients | Trains | Over | Raised | _Answers
"""What a process sends."""

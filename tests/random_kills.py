"""gputune killed at random moments, and what each kill left.

Each kill has folders of its own for the working folder, the cache, the temporary files and /dev/shm, which is mounted
over in a mount namespace of its own; that also tells which processes are left of it.
"""

import fcntl
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from making import environ, profile
from stand_in import TORCH
from stepping import TRAINING

from gputune.errors import GputuneError
from gputune.host import Host
from gputune.profile import load, places, save
from gputune.runtime.local_fingerprint import local_fingerprint

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
AT_ONCE = 2
"""How many gputunes run at the same time."""
FIRST_SECONDS = 0.3
"""The start of a verb, which is hit as often as a third of its life."""
TRIES = 3
"""How often a verb that is not killed may fail until it lives: on a busy machine a step may take too long for it."""
LEAVING_SECONDS = 5.0
"""How long a process may take to go after gputune has ended: a resource tracker has 3 s."""
ENDING_SECONDS = 20.0
"""How long gputune may take to end by TERM and INT on a busy machine."""
SLOW_DISK_SECONDS = 0.15
OLD_THREADS = 3
"""The value of a setting in the profiles that stand there before a kill."""

MOUNTING = ["unshare", "-rm" if os.getuid() else "-m"]
"""The words before a command that is to have mounts of its own."""
_OWN_SHM = 'mount --bind "$0" /dev/shm && exec "$@"'
_SHOW = [sys.executable, "-c", "import os; print(os.environ.get('GPUTUNE_APPLY'))"]
_GPUTUNE = str(Path(sys.executable).with_name("gputune"))

_IS_OURS = re.compile(r'File ".*/gputune(_start|/.*)\.py"')
"""A line of a traceback that names code of gputune's, and not what Python runs before it."""

_IN_GPUTUNE = """
import os, sys, time
def of(argv): return os.path.basename(argv[1] if len(argv) > 1 else "") == "gputune"
def on_import(name, change):
    import importlib.machinery
    class Finder:
        @staticmethod
        def find_spec(wanted, path=None, target=None):
            if wanted != name: return None
            spec = importlib.machinery.PathFinder.find_spec(wanted, path)
            run = spec.loader.exec_module
            def executed(module):
                run(module)
                change(module)
            spec.loader.exec_module = executed
            return spec
    sys.meta_path.insert(0, Finder)
def slowly(name):
    call = getattr(os, name)
    def slow(*args, **more):
        time.sleep({slow!r})
        return call(*args, **more)
    setattr(os, name, slow)
if of(sys.orig_argv):
{body}
"""
"""A sitecustomize whose body runs in gputune's own process alone, before gputune is imported."""

_QUICKLY = """
    def change(probing):
        probe = probing.probe
        def quickly(request, **more):
            return probe(probing.Request(budget="quick", only={only!r}), **more)
        probing.probe = quickly
    on_import("gputune.probing", change)
"""
"""`apply auto` probes for a minute."""

_AT_ONCE = """
    def change(probing):
        def probe(request, **more):
            sys.path.insert(0, {tests!r})
            from making import profile
            from gputune.host import Host
            from gputune.runtime.local_fingerprint import local_fingerprint
            return profile({{"omp_threads": 7}}, fingerprint=local_fingerprint(Host()))
        probing.probe = probe
    on_import("gputune.probing", change)
"""
_ON_A_SLOW_DISK = '    for name in ("fsync", "link", "rename", "replace"): slowly(name)\n'

_EIGHT = """
    def change(probing):
        probe = probing.probe
        def on_eight(request, **more):
            sys.path.insert(0, {tests!r})
            from recorded import RecordedHost
            return probe(request, **{{**more, "host": RecordedHost("nvidia-h200-x8")}})
        probing.probe = on_eight
    on_import("gputune.probing", change)
elif "gputune.bench_process.serve" in sys.orig_argv:
    from gputune import benches
    benches.__path__.insert(0, {planted!r})
"""

_BENCH = """
import multiprocessing, tempfile, time
from gputune.measurement import Measurement
def measure(context):
    with tempfile.TemporaryDirectory(prefix="gputune-"):
        spawning = multiprocessing.get_context("spawn")
        locks = [spawning.Lock() for _ in range(4)]
        workers = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.7,)) for _ in range(2)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
    yield Measurement(bench={bench!r}, metric={metric!r}, unit="TFLOP/s", samples=(600.0,) * 12, device=context.device)
"""
"""A bench that does what benches do that load data: it has processes, semaphores and temporary files."""

_HANGING = "import time; time.sleep(1000)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    name: str
    words: Sequence[str]
    share: int
    """How many of 200 kills it gets."""
    body: str = ""
    """Of the sitecustomize."""
    torch: str = ""
    """A stand-in for torch."""
    variables: Mapping[str, str] = field(default_factory=dict)
    cached: bool = False
    """Whether the cache has a profile already."""
    seconds: float | None = None
    """The life in which it is killed, where it would last longer."""
    slow: bool = False
    """It lasts too long to be among few."""


_TESTS = str(Path(__file__).parent)
_PROBE = ["probe", "--budget", "quick", "-o", "profile.yaml", "--only"]
_APPLY = ["apply", "auto", "--", *_SHOW]
_MISSING, _ALWAYS = {"GPUTUNE_PROBE": "missing"}, {"GPUTUNE_PROBE": "always"}
_WRITING = _AT_ONCE.format(tests=_TESTS) + _ON_A_SLOW_DISK

VERBS = {
    verb.name: verb
    for verb in (
        Verb(name="probe precision", words=[*_PROBE, "precision"], share=16),
        Verb(name="probe conv", words=[*_PROBE, "conv"], share=12, slow=True),
        Verb(name="probe dataloader", words=[*_PROBE, "dataloader"], share=16, slow=True),
        Verb(name="probe training_step", words=[*_PROBE, "training_step"], share=12, slow=True),
        Verb(name="probe writing", words=["probe", "-o", "profile.yaml"], body=_WRITING, cached=True, share=16),
        Verb(name="probe, torch hangs", words=[*_PROBE, "precision"], torch=_HANGING, seconds=4, share=8),
        Verb(
            name="apply auto", words=_APPLY, body=_QUICKLY.format(only=["precision"]), variables=_MISSING, share=20
        ),
        Verb(
            name="apply auto dataloader", words=_APPLY, body=_QUICKLY.format(only=["dataloader"]),
            variables=_MISSING, share=14, slow=True,
        ),
        Verb(name="apply auto writing", words=_APPLY, body=_WRITING, variables=_MISSING, share=8),
        Verb(name="apply auto writing again", words=_APPLY, body=_WRITING, variables=_ALWAYS, cached=True, share=8),
        Verb(name="check", words=["check"], share=8),
        Verb(name="check, torch hangs", words=["check"], torch=_HANGING, seconds=4, share=8),
        Verb(name="status", words=["status"], share=8),
        Verb(name="status, torch hangs", words=["status"], torch=_HANGING, seconds=4, share=6),
        Verb(
            name="batch-size", words=["batch-size", "train.py:make_training", "--device", "cpu", "--seconds", "5"],
            share=16,
        ),
        Verb(
            name="probe --device all", torch=TORCH, body=_EIGHT, share=24,
            words=["probe", "--device", "all", *_PROBE[1:], "side_by_side,dataloader"],
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    number: int
    verb: str
    signal: signal.Signals
    whole_group: bool
    """Sent to the foreground process group, as a terminal and a scheduler do, and not to gputune's process alone."""
    again_after: float | None
    """Seconds until the signal is sent a second time."""
    part: str
    """Of the life: start or all."""
    share: float
    """The moment, as a share of that part."""

    def __str__(self) -> str:
        to = "its group" if self.whole_group else "it"
        twice = f", again after {self.again_after:.3f} s" if self.again_after else ""
        return f"{self.number}: {self.verb}: {self.signal.name} to {to}{twice}"


def draw(count: int, seed: int, verbs: Sequence[str] = ()) -> list[Kill]:
    generator = random.Random(seed)
    chosen = [VERBS[name] for name in verbs or VERBS]
    names = [verb.name for verb in chosen for _ in range(verb.share)]
    order = [names[number * len(names) // count % len(names)] for number in range(count)]
    kills = [
        Kill(
            number=number,
            verb=name,
            signal=SIGNALS[number % 4],
            whole_group=number // 4 % 2 == 1,
            again_after=generator.uniform(0.001, 0.2) if generator.random() < 0.3 else None,
            part="start" if generator.random() < 0.25 else "all",
            share=generator.random(),
        )
        for number, name in enumerate(order)
    ]
    generator.shuffle(kills)
    return kills


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What became of one kill: the moment in seconds, how it ended, and what was wrong by kind."""

    kill: Kill
    moment: float
    code: int | None
    ended: bool
    """It had ended by itself before."""
    wrong: Mapping[str, str]

    def __str__(self) -> str:
        wrong = "; ".join(f"{kind}: {what}" for kind, what in self.wrong.items())
        return f"{self.kill}, {self.moment:.3f} s after its start (exit code {self.code}): {wrong}"


class Run:
    def __init__(self, verb: Verb, folder: Path) -> None:
        self.verb, self.folder = verb, folder
        self.cwd, self.cache, self.tmp, self.shm = (folder / name for name in ("cwd", "cache", "tmp", "shm"))
        planted = folder / "planted"
        for made in (self.cwd, self.cache, self.tmp, self.shm, planted / "benches", self.cwd / "each"):
            made.mkdir(parents=True)
        body = verb.body.format(tests=_TESTS, planted=str(planted / "benches")) if verb.body is _EIGHT else verb.body
        (planted / "sitecustomize.py").write_text(_IN_GPUTUNE.format(slow=SLOW_DISK_SECONDS, body=body or "    pass"))
        if verb.torch:
            (planted / "torch.py").write_text(verb.torch)
        for bench, metric in (("side_by_side", "matmul"), ("dataloader", "told")):
            (planted / "benches" / f"{bench}.py").write_text(_BENCH.format(bench=bench, metric=metric))
        (self.cwd / "train.py").write_text(TRAINING)
        save(profile({"omp_threads": OLD_THREADS}), self.cwd / "profile.yaml")
        self.env = environ(
            XDG_CACHE_HOME=str(self.cache), TMPDIR=str(self.tmp), PYTHONPATH=str(planted),
            TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"), PYTHONDONTWRITEBYTECODE="1", **verb.variables,
        )  # fmt: skip
        if verb.cached:
            here = local_fingerprint(Host(environ=self.env))
            places.keep(profile({"omp_threads": OLD_THREADS}, fingerprint=here), here, self.env)

    def start(self) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [*MOUNTING, "sh", "-c", _OWN_SHM, str(self.shm), _GPUTUNE, *self.verb.words],
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=(self.folder / "out").open("w"),
            stderr=(self.folder / "err").open("w"),
            start_new_session=True,
            text=True,
        )
        while child.poll() is None and b"gputune" not in _read(child.pid, "cmdline").partition(b"\0")[2][:300]:
            time.sleep(0.001)
        return child

    def processes(self) -> dict[int, str]:
        mark = f"XDG_CACHE_HOME={self.cache}".encode()  # which nothing changes further in
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return {
            pid: _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")[:160]
            for pid in pids
            if mark in _read(pid, "environ").split(b"\0") and pid != os.getpid()
        }

    def leftovers(self) -> Iterator[tuple[str, str]]:
        for kind, where in (("shm", self.shm), ("tmp", self.tmp)):
            if names := sorted(path.name for path in where.iterdir()):
                yield kind, ", ".join(names)
        if hidden := self._hidden():
            yield "beside", ", ".join(path.name for path in hidden)
        yield from self._broken()
        said = self.said()
        if "Traceback" in said and _IS_OURS.search(said):
            yield "traceback", " | ".join(said.strip().splitlines()[:40])

    def said(self) -> str:
        return (self.folder / "err").read_text(errors="replace")

    def interrupted_python(self) -> bool:
        """Whether SIGINT met Python's own start, or pip's script, before any code of gputune ran."""
        said = self.said()
        return "KeyboardInterrupt" in said and not _IS_OURS.search(said)

    def _broken(self) -> Iterator[tuple[str, str]]:
        if not (self.cwd / "profile.yaml").exists():
            yield "profile", "there is none any more"
        for path in self._written():
            if path.suffix == ".yaml" and not path.name.startswith("."):
                try:
                    load(path)
                except GputuneError as error:
                    yield "profile", str(error)

    def _hidden(self) -> list[Path]:
        return [path for path in self._written() if path.name.startswith(".")]

    def _written(self) -> list[Path]:
        return [path for folder in (self.cwd, self.cache) for path in folder.rglob("*") if path.is_file()]

    def next_start(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the next `apply auto` and the one whose file it is, and with what is there after it."""
        healing = _IN_GPUTUNE.format(slow=0, body=_AT_ONCE.format(tests=_TESTS))
        (self.folder / "planted" / "sitecustomize.py").write_text(healing)
        (self.folder / "planted" / "torch.py").unlink(missing_ok=True)
        for path in self._hidden():
            os.utime(path, (0, 0))  # the next write comes much later
        for words in (_APPLY, ["probe", "-o", "profile.yaml"]):
            env = {**self.env, **_MISSING}
            done = subprocess.run(
                [_GPUTUNE, *words], env=env, cwd=self.cwd, capture_output=True, text=True, timeout=120, check=False
            )
            applied = words is not _APPLY or done.stdout.startswith('{"settings":')
            if done.returncode or not applied or "waiting for" in done.stderr or "not probed" in done.stderr:
                yield "next start", f"{words[0]}: {done.returncode}, {done.stdout[:80]!r}, {done.stderr[-300:]!r}"
        if hidden := self._hidden():
            yield "for ever", ", ".join(path.name for path in hidden)
        for lock in self.cache.rglob("*.lock"):
            with lock.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield "next start", f"{lock.name} is held"


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@cache
def life(verb: str) -> float:
    """The seconds that a verb lasts if it is not killed, on a machine as busy as it is."""
    if VERBS[verb].seconds:
        return float(VERBS[verb].seconds or 0)
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(TRIES):
            run = Run(VERBS[verb], Path(folder) / str(attempt))
            child = run.start()
            started = time.monotonic()
            code = child.wait(120)
            if code == 0:
                return time.monotonic() - started
        raise AssertionError(verb, code, (run.folder / "err").read_text())


def what_is_left(kill: Kill) -> Left:
    """Start a verb, kill it, and look at all that it left."""
    part = FIRST_SECONDS if kill.part == "start" else life(kill.verb)
    moment = kill.share * part
    with tempfile.TemporaryDirectory(prefix="kill-", ignore_cleanup_errors=True) as folder:
        run = Run(VERBS[kill.verb], Path(folder))
        child = run.start()
        time.sleep(moment)
        ended = child.poll() is not None
        sent = time.monotonic()
        _send(kill, child)
        wrong = {}
        try:
            child.wait(ENDING_SECONDS)
            if not child.returncode and time.monotonic() - sent > LEAVING_SECONDS:
                wrong["went on"] = f"it ended as if nothing had been, {time.monotonic() - sent:.1f} s later"
        except subprocess.TimeoutExpired:
            wrong["no end"] = f"still there after {ENDING_SECONDS:g} s"
            child.kill()
            child.wait()
        deadline = time.monotonic() + LEAVING_SECONDS
        while (left := run.processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        if left:
            wrong["process"] = ", ".join(left.values())
            _end(left)
        wrong |= _together(run.leftovers())
        if kill.signal == signal.SIGKILL:
            wrong.pop("beside", None)  # the next write removes it
        if run.interrupted_python():
            wrong.pop("went on", None)
        elif not (wrong.keys() - {"traceback"}) and child.returncode not in _codes(kill, ended):
            wrong["exit code"] = f"{child.returncode}: {run.said().splitlines()[-1:]}"
        wrong |= _together(run.next_start())
        return Left(kill=kill, moment=moment, code=child.returncode, ended=ended, wrong=wrong)


def _send(kill: Kill, child: subprocess.Popen[str]) -> None:
    for wait in [0.0, *([kill.again_after] if kill.again_after else [])]:
        time.sleep(wait)
        if child.poll() is None:
            (os.killpg if kill.whole_group else os.kill)(child.pid, kill.signal)


def _codes(kill: Kill, ended: bool) -> set[int]:
    """The exit codes that gputune may have: as a signal ends it, as shells report that, or its own."""
    return {0} if ended else {0, -kill.signal, 128 + kill.signal}


def _end(left: Mapping[int, str]) -> None:
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _together(found: Iterator[tuple[str, str]]) -> dict[str, str]:
    whole: dict[str, str] = {}
    for kind, what in found:
        whole[kind] = f"{whole[kind]}; {what}" if kind in whole else what
    return whole


def all_of(kills: Sequence[Kill]) -> list[Left]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(life, dict.fromkeys(kill.verb for kill in kills)))
        return list(pool.map(what_is_left, kills))

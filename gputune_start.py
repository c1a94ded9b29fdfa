"""How gputune starts: the command `gputune`, `python -m gputune`, and each process that gputune starts of its own code.

It rests on the standard library alone and its name is nobody's, so that it runs where gputune itself cannot: with a
`gputune.py` or `typer.py` of the user's on PYTHONPATH, or below an installation that is broken. `gputune apply PROFILE
-- CMD` then runs CMD all the same.

`python gputune_start.py WORDS` is `gputune WORDS`; `python gputune_start.py -m MODULE WORDS` runs a module of gputune.
"""

# Built in: no file of a user is found in its place.
import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False  # typing's own takes 4 ms, in which an interrupt would be Python's
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec, PathFinder
    from typing import Any, NoReturn

HERE = os.path.dirname(os.path.abspath(__file__))

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The exit codes of shells for a command that does not exist, or is no program."""
INTERRUPTED, FAULT, REFUSED = 130, 70, 78
"""128 + SIGINT, as shells say it; EX_SOFTWARE and EX_CONFIG of sysexits.h."""
OWN_CODES = (2, REFUSED, NOT_EXECUTABLE, NOT_FOUND, INTERRUPTED, 129, 141, 143)
"""The exit codes with which `gputune apply PROFILE -- CMD` may end in place of CMD: wrong usage, CMD cannot be run, a
signal. Any other says that something exited which was only to be imported."""

COMPLETE = "_GPUTUNE_COMPLETE"
"""The variable with which a shell asks what may follow the words on its line."""
FLAGS = ("--ignore-fingerprint", "--strict", "--inject", "--inject-dataloader", "--quiet")
WITH_VALUE = ("--numerics", "--only", "--skip", "--emit")
"""The options of `gputune apply` with which CMD runs, without and with a value: all but `--dry-run` and `--help`."""


def words(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of gputune in a process of its own, whatever is on PYTHONPATH."""
    return [sys.executable, "-P", os.path.abspath(__file__), "-m", module, *arguments]


class OwnFinder:
    """Finds gputune beside this file, and what its processes take from others ahead of the user's own of that name."""

    def __init__(self) -> None:
        self.path_finder: type[PathFinder] = sys.modules["_frozen_importlib_external"].PathFinder
        self.users_order = list(sys.path)
        self.order = sorted(sys.path, key=_strangers().__contains__)

    def find_spec(self, name: str, path: "Sequence[str] | None" = None, target: "Any" = None) -> "ModuleSpec | None":
        if name in ("gputune", "gputune_start"):
            return self.path_finder.find_spec(name, [HERE])
        if name in ("psutil", "pynvml"):
            return self.path_finder.find_spec(name, self.order)
        # The program that is measured for or started has the user's torch.
        return self.path_finder.find_spec(name, self.users_order) if name == "torch" else None


def _strangers() -> set[str]:
    """The entries of sys.path that are the user's: of PYTHONPATH, and the folder of the script or the working folder.
    Where gputune, the standard library or this Python's packages are is not.
    """
    import site

    given = [] if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not sys.flags.safe_path:
        given += sys.path[:1]
    library = os.path.dirname(os.path.abspath(os.__file__))
    own = {HERE, library, os.path.join(library, "lib-dynload"), *site.getsitepackages(), site.USER_SITE}
    absolute = {_absolute(entry) for entry in given} - own
    return {entry for entry in sys.path if _absolute(entry) in absolute}


def _absolute(entry: str) -> str:
    try:
        return os.path.abspath(entry)
    except OSError:  # the working folder was deleted
        return entry


def main() -> "NoReturn":
    """Run the command line. Every fault of gputune's, and an interrupt at any moment, is one line and a documented exit
    code; where CMD is to run, it runs.
    """
    try:
        code = _guarded(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
        _at_interrupt(lambda *_: os._exit(code))
        say("interrupted; nothing was written")
    _at_interrupt(lambda *_: os._exit(code))  # all has been said: what is left is the interpreter's own end
    sys.exit(code)


def _guarded(typed: list[str]) -> int:
    """The exit code of the command line, unless the command of `gputune apply` takes this process over."""
    running = False
    try:
        _at_interrupt(_interrupted)
        finder = OwnFinder()
        sys.meta_path.insert(0, finder)
        sys.path[:] = finder.order  # before anything else is imported
        sys.unraisablehook = _unraisable
        if sys.warnoptions:  # a dependency's warning must not become an error here
            import warnings

            warnings.simplefilter("ignore")
        if not typed and COMPLETE in os.environ:
            sys.modules["rich"] = None  # type: ignore[assignment]  # with it typer cuts what it says of a word into lines
        from gputune import cli

        cli.add_verbs(typed[0] if typed else None)
        _at_interrupt(_signal.default_int_handler)
        running = True
        cli.run(COMPLETE)
    except KeyboardInterrupt:
        raise
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if running and (code in OWN_CODES or not command_of(typed)[0]):
            return code
        return _fault(ended, typed, running)
    except BaseException as error:
        # Before Python 3.12 what a `__set_name__` raises becomes the cause of a RuntimeError.
        number = _signal_of(error.__cause__)
        if number == 2:
            raise KeyboardInterrupt from None
        return 128 + number if number else _fault(error, typed, running)


def _fault(error: BaseException, typed: list[str], running: bool) -> int:
    """Say what went wrong and run the command; without one, or with --strict, return the exit code."""
    if typed[:1] == ["--debug"]:
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            _write(line)
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:  # an exception of a stranger's that cannot say what it is
        said = type(error).__name__
    is_ours = running and not isinstance(error, ImportError)  # else something of the installation is missing
    said = f"{said}; this is a bug in gputune" if is_ours else f"gputune cannot start: {said}"
    command, strict = command_of(typed)
    if command and not strict:
        say(f"{said}; running {command[0]} unchanged")
        try:
            execute(command, inherited())
        except (OSError, ValueError) as failed:
            return not_executed(command, failed)
    hint = "without --strict the command runs unchanged" if command else "gputune --debug shows the traceback"
    say(f"{said}; {hint}")
    return REFUSED if command else FAULT


def command_of(typed: "Sequence[str]") -> tuple[list[str], bool]:
    """The command in the words after `gputune`, and whether --strict is among them; no words where none is to be run.

    The values of options are not looked at: where gputune cannot, CMD runs rather than not.
    """
    left = list(typed[1:] if typed[:1] == ["--debug"] else typed)
    if left[:1] != ["apply"]:
        return [], False
    del left[0]
    strict = False
    while left and left[0].startswith("-") and left[0] != "-":
        option = left.pop(0)
        if option == "--":
            break
        strict = strict or option == "--strict"
        if option in WITH_VALUE:
            del left[:1]
        elif option not in FLAGS and option.partition("=")[0] not in WITH_VALUE:
            return [], strict
    command = left[1:]
    if command[:1] == ["--"]:
        return command[1:], strict
    return ([] if command and command[0].startswith("-") else command), strict


def execute(command: "Sequence[str]", environ: "Mapping[str, str]") -> "NoReturn":
    """Replace this process by `command`, found on `environ`'s PATH. Raises OSError or ValueError."""
    # Python ignores these two, and ignored signals stay ignored across exec: `command | head` would never end.
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        if callable(_signal.getsignal(number)):  # one that comes now would be lost with Python's handler
            _signal.signal(number, _signal.SIG_DFL)
    # exec refuses a variable without a name, although an environment may contain one.
    os.execvpe(command[0], list(command), {name: value for name, value in environ.items() if name})


def not_executed(command: "Sequence[str]", error: OSError | ValueError) -> int:
    """Say why a command could not be run; the exit code that a shell has for that."""
    name = command[0]
    say(f"{name or repr(name)}: {getattr(error, 'strerror', None) or error}")
    return NOT_FOUND if isinstance(error, FileNotFoundError | NotADirectoryError) or not name else NOT_EXECUTABLE


def inherited() -> dict[str, str]:
    """This process's own at its start: in the C locale Python adds LC_CTYPE (PEP 538), not meant for the command."""
    environ = dict(os.environ)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read()
    except OSError:
        return environ
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given.split(b"\0")):
        environ.pop("LC_CTYPE", None)
    return environ


def say(line: str) -> None:
    """Write one line of printable characters to stderr, which may be closed or full."""
    _write(f"gputune: {' '.join(line.split())}")


def _write(line: str) -> None:
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
    try:
        os.write(sys.stderr.fileno(), f"{shown}\n".encode(sys.stderr.encoding, "replace"))
    except (OSError, ValueError, AttributeError):  # of a stderr that is None, too
        return


def _interrupted(number: int, frame: object) -> "NoReturn":
    """Ends at once: an exception would be printed and lost where it meets a callback of the import system."""
    say("interrupted; nothing was written")
    os._exit(INTERRUPTED)


def _unraisable(unraisable: "Any") -> None:
    """A signal whose exception came within a destructor is sent again, behind it, instead of being printed and lost."""
    import _thread
    import time

    number = _signal_of(unraisable.exc_value)
    if not number:
        sys.__unraisablehook__(unraisable)
        return
    if number != _signal.SIGINT:  # which alone still has its handler: the others' is for the first signal

        def ended(number: int, frame: object) -> "NoReturn":
            _signal.signal(number, _signal.SIG_IGN)
            sys.exit(128 + number)

        _signal.signal(number, ended)

    def again() -> None:
        time.sleep(0.01)
        os.kill(os.getpid(), number)

    _thread.start_new_thread(again, ())


def _signal_of(error: object) -> int:
    """The signal for which a handler raised this; 0 for what is raised for another reason."""
    if isinstance(error, KeyboardInterrupt):
        return int(_signal.SIGINT)
    codes = {128 + number: number for number in (_signal.SIGTERM, _signal.SIGHUP)}
    return codes.get(error.code, 0) if isinstance(error, SystemExit) and isinstance(error.code, int) else 0


def _at_interrupt(handler: "Any") -> None:
    """Handle SIGINT so, unless it is ignored, as below nohup: the command inherits that."""
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, handler)


def _run_module(finder: OwnFinder, name: str, arguments: "Sequence[str]") -> None:
    """Run it as `python -m` would, but keep this file as `__main__`: the processes that multiprocessing spawns below it
    run it first, before they unpickle anything of gputune's.
    """
    sys.path[:] = finder.order
    import runpy

    sys.path[:] = finder.users_order
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__")


if __name__ == "__mp_main__" or (__name__ == "__main__" and sys.argv[1:2] == ["-m"]):
    _finder = OwnFinder()
    sys.meta_path.insert(0, _finder)
if __name__ == "__main__":
    if sys.argv[1:2] == ["-m"]:
        _run_module(_finder, sys.argv[2], sys.argv[3:])
    else:
        main()

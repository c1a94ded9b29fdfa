"""Runs at the start of every Python below `gputune apply`: applies what GPUTUNE_APPLY says right after `import torch`.

This folder is first on PYTHONPATH. Every Python, however old, runs this file at its start, so it uses plain syntax and
imports only os and sys. It does two things:

- A finder for exactly the name "torch" lets the finders behind it find torch, and replaces `exec_module` on the loader
  they return. The loader object itself is kept: a proxy would break `inspect`, `importlib.resources` and pickling.
  Probing with `find_spec` runs no module, and a failed import leaves everything unchanged, so the finder stays ready.
- The sitecustomize that this one hides is run as if this one did not exist.

A Python that never imports torch pays less than a millisecond. One older than 3.11 says in one line that torch's
settings stay as they are. (Below 3.4, which follow no import, only the second is done, as without GPUTUNE_APPLY or with
GPUTUNE_DISABLE=1. A program that is being tuned is kept off the user's files even so.)
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PRIVATE = os.path.join(os.path.dirname(_HERE), "private.py")


class _TorchFinder(object):
    """Stays on `sys.meta_path` when done: removing it could make a thread that is importing skip a finder."""

    gputune = True
    done = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.done or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader):
        body = getattr(loader, "exec_module", None)
        if body is None or isinstance(loader, type):
            return
        hidden = getattr(loader, "__dict__", {}).get("exec_module")

        def exec_module(module):
            # A loader may load several modules, and a folder named torch without code is a module too.
            if module.__name__ == "torch":
                _restore(loader, exec_module, hidden)
            body(module)
            if module.__name__ == "torch" and hasattr(module, "__version__") and not self.done:
                self.done = True
                _apply()

        try:
            loader.exec_module = exec_module
        except Exception as error:
            _say("torch's loader cannot be followed: %s" % error)


def _restore(loader, ours, hidden):
    """The loader stays in torch.__spec__, which a program may pickle or copy: not with a function from here."""
    try:
        if loader.__dict__["exec_module"] is ours:  # and nobody else's over it
            del loader.exec_module
            if hidden is not None:
                loader.exec_module = hidden
    except Exception:
        return  # a loader that keeps its attributes elsewhere keeps this one


def _apply():
    """Nothing that goes wrong here may make the user's `import torch` fail."""
    if not _wanted():
        return
    if sys.version_info < (3, 11):
        _say("this is Python %d.%d, and gputune needs 3.11 or newer" % sys.version_info[:2])
        return
    try:
        _private().hook().run(os.environ["GPUTUNE_APPLY"])
    except Exception as error:
        _say("%s: %s" % (type(error).__name__, error))


def _private():
    import importlib.util

    spec = importlib.util.spec_from_file_location("_gputune_private", _PRIVATE)
    private = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(private)
    return private


def _begin():
    """A program that is being tuned must not write where it should not, from its first line on: else it ends."""
    try:
        _private().own("live.scratch").begin(os.environ)
    except Exception as error:
        _say("%s: %s" % (type(error).__name__, error))
        os._exit(1)


def _say(fault):
    try:
        line = " ".join(str(fault).split())
        line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)  # as resources.printable
        sys.stderr.write("gputune: settings were not applied: %s\n" % line)
    except Exception:
        return  # stderr may be closed or full


def _wanted():
    return bool(os.environ.get("GPUTUNE_APPLY")) and os.environ.get("GPUTUNE_DISABLE") != "1"


def _install():
    if sys.version_info >= (3, 4) and os.environ.get("GPUTUNE_APPLY"):
        if not any(getattr(finder, "gputune", False) for finder in sys.meta_path):
            if _wanted():
                sys.meta_path.insert(0, _TorchFinder())
            if os.environ.get("GPUTUNE_TUNE"):  # switched off or not, it must not write to the user's files
                _begin()


def _is_here(entry):
    try:
        return os.path.abspath(entry) == _HERE
    except Exception:  # not a path, or a relative one and no working folder any more
        return False


def _chain():
    """Run the sitecustomize behind this one. What it raises reaches `site`, which reports it as usual."""
    places = [(place, entry) for place, entry in enumerate(sys.path) if _is_here(entry)]
    for place, _ in reversed(places):
        del sys.path[place]
    this = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        # Python 2 has no name on the error, and ignores every ImportError here.
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this
    finally:
        for place, entry in places:
            sys.path.insert(place, entry)


_install()
if __name__ == "sitecustomize":
    _chain()

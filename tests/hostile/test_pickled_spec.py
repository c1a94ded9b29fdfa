"""Below `gputune apply` torch's `__spec__` is pickled and copied as without it, and its loader is as Python made it."""

import pytest
from making import environ, python

from gputune.runtime.environment import SHIM

TORCH = """
__version__ = "2.2.0"
class _Names:
    def __init__(self, **names): self.__dict__.update(names)
_C = _Names()
backends = _Names(cuda=_Names(matmul=_Names(allow_tf32=False)),
                  cudnn=_Names(benchmark=False, allow_tf32=True, deterministic=False))
def are_deterministic_algorithms_enabled(): return False
"""
APPLIED = "import torch; assert torch.backends.cudnn.benchmark is True\n"
PICKLED = "import copy, pickle; assert pickle.loads(pickle.dumps(torch.__spec__)) == copy.deepcopy(torch.__spec__)\n"


def run(site: object, code: str) -> None:
    env = environ(GPUTUNE_APPLY='{"settings":{"cudnn_benchmark":true}}', PYTHONPATH=f"{SHIM}:{site}")
    done = python("-c", code, env=env)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def site(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    return tmp_path


def test_once_it_is_imported(site):
    run(site, APPLIED + PICKLED + "assert 'exec_module' not in vars(torch.__loader__)")


def test_while_it_is_imported(site):
    (site / "torch" / "__init__.py").write_text(TORCH + "import pickle; pickle.dumps(__spec__)\n")
    run(site, APPLIED)


def test_once_it_is_looked_for_and_then_imported(site):
    run(site, "import importlib.util; importlib.util.find_spec('torch')\n" + APPLIED + PICKLED)


def test_after_an_import_that_failed(site):
    failing = "import builtins\nif not hasattr(builtins, 'again'):\n    builtins.again = __spec__\n    raise OSError\n"
    (site / "torch" / "__init__.py").write_text(failing + TORCH)
    first = "import builtins, pickle\ntry: import torch\nexcept OSError: pickle.dumps(builtins.again)\n"
    run(site, first + APPLIED + PICKLED)


def test_after_a_reload(site):
    again = "import importlib; torch.backends.cudnn.benchmark = 7; importlib.reload(torch)\n"
    run(site, APPLIED + again + PICKLED + "assert torch.backends.cudnn.benchmark is False")  # as without gputune


SHARED = """
import importlib.machinery, sys
class Loader:
    def create_module(self, spec): return None
    def exec_module(self, module):
        exec(open(f"{place}/torch/__init__.py").read() if module.__name__ == "torch" else "value = 3", module.__dict__)
loader, place = Loader(), sys.argv[1]
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, loader) if name in ("torch", "other") else None
sys.meta_path.append(Finder())
del sys.path[:2]
"""


def test_a_loader_that_loads_other_modules_too(site):
    code = "import sys; sys.argv.append(sys.path[2])\n" + SHARED.replace("del sys.path[:2]", "del sys.path[2]")
    looked = "import importlib.util; [importlib.util.find_spec('torch') for _ in range(3)]; import other\n"
    run(site, code + looked + APPLIED + PICKLED + "assert not vars(loader) and other.value == 3")


def test_what_another_tool_has_put_on_the_loader_stays(site):
    tool = """
import importlib.machinery, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            body = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (body(module), setattr(module, "seen", True))
            return spec
sys.meta_path.insert(1, Finder())
"""
    run(site, tool + APPLIED + "assert torch.seen and torch.__loader__.exec_module.__name__ == '<lambda>'")


@pytest.mark.slow
def test_the_real_torch():
    env = environ(GPUTUNE_APPLY='{"settings":{"cudnn_benchmark":true}}', PYTHONPATH=SHIM)
    done = python("-c", APPLIED + PICKLED, env=env)
    assert (done.returncode, done.stderr) == (0, "")

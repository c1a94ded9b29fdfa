"""The shim in real interpreters: what every Python below `gputune apply` does with its first `import torch`.

Where only the mechanism is asked about, torch is a small stand-in on PYTHONPATH (TORCH), so that other Pythons, which
have none, can be asked too.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from making import command, environ, python

from gputune.live.orders import Assignment
from gputune.runtime.environment import SHIM

PAYLOAD = '{"settings":{"cudnn_benchmark":true,"matmul_precision":"tf32"}}'

TORCH = """
from types import SimpleNamespace as _Names
__version__ = "2.2.0"
_C = _Names()
backends = _Names(
    cuda=_Names(matmul=_Names(allow_tf32=False)),
    cudnn=_Names(benchmark=False, allow_tf32=True, deterministic=False),
)
_level = ["highest"]
def set_float32_matmul_precision(level):
    _level[0] = level
    backends.cuda.matmul.allow_tf32 = level != "highest"
def get_float32_matmul_precision():
    return _level[0]
def are_deterministic_algorithms_enabled():
    return False
"""

FLAGS = "sys.modules['_gputune.live.flags']"
HOOK = "sys.modules['_gputune.live.hook']"
SHOW = "import torch; print(torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark)"
APPLIED, UNTOUCHED = "high True\n", "highest False\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    package = tmp_path / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(TORCH)
    return package.parent


def shimmed(site: Path | str | None = None, payload: str = PAYLOAD, **more: str) -> dict[str, str]:
    path = SHIM if site is None else f"{SHIM}:{site}"
    return environ(**{"GPUTUNE_APPLY": payload, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more})


def run(code: str, env: dict[str, str], *options: str) -> str:
    done = python(*options, "-c", code, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def told() -> Any:
    code = """
import importlib.util, inspect, json, sys
told = {"before": sorted(name for name in sys.modules if "gputune" in name or name == "torch")}
told["probed"] = [importlib.util.find_spec("torch").name for _ in range(3)]
told["imported by probing"] = "torch" in sys.modules
import torch
told["benchmark"] = torch.backends.cudnn.benchmark
told["level"] = torch.get_float32_matmul_precision()
told["allow_tf32"] = torch.backends.cuda.matmul.allow_tf32
told["rows"] = sys.modules["_gputune.live.hook"].now()
told["gputune"] = sorted(name for name in sys.modules if name.split(".")[0] == "gputune")
told["cuda"] = torch.cuda.is_initialized()
told["source"] = inspect.getsource(torch)[:3]
told["loader"] = [type(torch.__loader__).__name__, sorted(vars(torch.__loader__))]
print(json.dumps(told))
"""
    return json.loads(run(code, shimmed("")))


@pytest.mark.frameworks
class TestRealTorch:
    def test_the_settings_are_applied(self, told: Any) -> None:
        assert (told["benchmark"], told["level"], told["allow_tf32"]) == (True, "high", True)

    def test_what_was_done_is_told_in_plain_data(self, told: Any) -> None:
        rows = [[row[key] for key in ("setting", "before", "after", "status", "source", "why")] for row in told["rows"]]
        assert rows == [
            ["cudnn_benchmark", False, True, "applied", "profile", "right after import torch"],
            ["matmul_precision", "ieee", "tf32", "applied", "profile", "right after import torch"],
        ]

    def test_nothing_is_imported_before_torch_is_and_the_programs_own_gputune_and_cuda_never(self, told: Any) -> None:
        assert (told["before"], told["gputune"], told["cuda"]) == ([], [], False)

    def test_probing_with_find_spec_imports_nothing_and_leaves_it_armed(self, told: Any) -> None:
        assert told["probed"] == ["torch"] * 3
        assert not told["imported by probing"]

    def test_torchs_loader_is_its_own(self, told: Any) -> None:
        assert told["source"]
        assert told["loader"][0] == "SourceFileLoader"

    def test_both_workers_of_torchrun(self, tmp_path: Path) -> None:
        script = tmp_path / "train.py"
        script.write_text(f"import os, sys\nsys.stdout = open(os.environ['RANK'], 'w')\n{SHOW}\n")
        done = python(
            "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", str(script),
            env=shimmed("", OMP_NUM_THREADS="1"), cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert [(tmp_path / rank).read_text() for rank in "01"] == [APPLIED] * 2


class TestWhere:
    def test_a_script_a_module_and_a_string(self, site: Path) -> None:
        (site / "program.py").write_text(SHOW)
        for arguments in (
            [str(site / "program.py")],
            ["-m", "program"],
            ["-s", "-P", "-c", f"import os; os.chdir('/'); {SHOW}"],
        ):
            assert python(*arguments, env=shimmed(site)).stdout == APPLIED

    def test_a_python_below_a_shell_below_a_python(self, site: Path) -> None:
        code = f"import subprocess, sys; subprocess.run(['sh', '-c', '\"$0\" -c \"$1\"', sys.executable, {SHOW!r}])"
        assert run(code, shimmed(site)) == APPLIED

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    @pytest.mark.parametrize("imports", ["parent", "child"])
    def test_children_of_multiprocessing(self, site: Path, method: str, imports: str) -> None:
        (site / "program.py").write_text(
            "import multiprocessing\n"
            f"def work():\n    {SHOW}\n"
            "if __name__ == '__main__':\n"
            f"    {'import torch' if imports == 'parent' else 'pass'}\n"
            f"    child = multiprocessing.get_context({method!r}).Process(target=work)\n"
            "    child.start()\n"
            "    child.join()\n"
        )
        assert python(str(site / "program.py"), env=shimmed(site)).stdout == APPLIED

    def test_a_thread(self, site: Path) -> None:
        code = f"import threading; one = threading.Thread(target=lambda: exec({SHOW!r})); one.start(); one.join()"
        assert run(code, shimmed(site)) == APPLIED

    def test_isolated_mode_is_beyond_reach(self, site: Path) -> None:
        code = f"import sys; sys.path.insert(0, {str(site)!r}); {SHOW}"
        for option in ("-I", "-E", "-S"):
            assert run(code, shimmed(site), option) == UNTOUCHED

    @pytest.mark.parametrize("variables", [{"GPUTUNE_APPLY": ""}, {"GPUTUNE_DISABLE": "1"}])
    def test_switched_off(self, site: Path, variables: dict[str, str]) -> None:
        code = f"import sys; print([one for one in sys.meta_path if hasattr(one, 'gputune')]); {SHOW}"
        assert run(code, shimmed(site, **variables)) == f"[]\n{UNTOUCHED}"

    def test_switched_off_by_the_program_before_it_imports_torch(self, site: Path) -> None:
        code = f"import os; os.environ['GPUTUNE_DISABLE'] = '1'; {SHOW}"
        assert run(code, shimmed(site)) == UNTOUCHED

    def test_a_python_without_torch_notices_nothing(self, tmp_path: Path) -> None:
        bare = "import sys; print(sorted({*sys.modules} | {'sitecustomize'}), sys.flags, sys.argv)"
        without = environ(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
        assert python("-c", bare, env=shimmed()).stdout == python("-c", bare, env=without).stdout


class TestImport:
    def test_a_missing_torch_is_missing_as_ever(self) -> None:
        code = "import sys; sys.path[:] = [one for one in sys.path if 'site-packages' not in one]\nimport torch"
        done = python("-c", code, env=shimmed())
        assert done.returncode == 1
        assert done.stderr.endswith("ModuleNotFoundError: No module named 'torch'\n")
        assert "gputune" not in done.stderr.replace(SHIM, "")

    def test_a_failing_torch_fails_as_ever_and_the_next_try_is_followed(self, site: Path) -> None:
        (site / "torch" / "__init__.py").write_text(
            "import os\nif 'BROKEN' in os.environ:\n    raise ImportError('libcuda')\n" + TORCH
        )
        code = f"""
import os, sys
try:
    import torch
except ImportError as error:
    print(error, "torch" in sys.modules)
del os.environ["BROKEN"]
{SHOW}
"""
        assert run(code, shimmed(site, BROKEN="1")) == f"libcuda False\n{APPLIED}"

    def test_reloading_does_not_apply_again(self, site: Path) -> None:
        code = f"import importlib, sys, torch; importlib.reload(torch); {SHOW}; print(len({FLAGS}.rows))"
        assert run(code, shimmed(site)) == f"{UNTOUCHED}2\n"

    def test_a_lazy_import_is_followed_when_it_happens(self, site: Path) -> None:
        code = f"""
import importlib.util, sys
spec = importlib.util.find_spec("torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules["torch"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("_gputune.live.hook" in sys.modules)
{SHOW}
"""
        assert run(code, shimmed(site)) == f"False\n{APPLIED}"

    @pytest.mark.parametrize("name", ["torch/data.txt", "torch.py", "torch/__init__.py"])
    def test_something_else_called_torch_is_not_torch(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        code = (
            f"import sys; sys.path[:] = [{str(tmp_path)!r}, *(one for one in sys.path if 'site-packages' not in one)]\n"
        )
        assert run(code + "import torch; print('fine')", shimmed(tmp_path)) == "fine\n"

    def test_two_copies_apply_once(self, site: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(SHIM, tmp_path / "copy")
        finders = "[one for one in sys.meta_path if hasattr(one, 'gputune')]"
        code = f"{SHOW}; import sys; print(len({finders}), len({FLAGS}.rows))"
        assert run(code, shimmed(f"{copy}:{site}")) == f"{APPLIED}1 2\n"

    def test_a_finder_that_wraps_the_others_does_not_loop(self, site: Path) -> None:
        code = f"""
import sys
class Wrapped:
    def __init__(self, inner): self.inner = inner
    def find_spec(self, name, path=None, target=None): return self.inner.find_spec(name, path, target)
sys.meta_path[:] = [Wrapped(one) for one in sys.meta_path]
{SHOW}
"""
        assert run(code, shimmed(site)) == UNTOUCHED


class TestPayload:
    """GPUTUNE_APPLY holds whatever the environment holds; the program runs on, and a fault is one line."""

    @pytest.mark.parametrize(
        ("payload", "fault"),
        [
            ("{", "settings were not applied: JSONDecodeError"),
            ("[1]", "settings were not applied: ValueError: GPUTUNE_APPLY is not a JSON object with settings"),
            ("[" * 4000, "settings were not applied: "),  # RecursionError, or from Python 3.12 on JSONDecodeError
            (" " * 16385, "settings were not applied: ValueError: GPUTUNE_APPLY is longer than 16384 bytes"),
            ('{"matmul_precision":"tf32"}', "settings were not applied: ValueError: GPUTUNE_APPLY is not a JSON obj"),
            ('{"settings":{"no_such":1}}', "no_such was not applied: this gputune has no such setting"),
            ('{"settings":{"_tf32":1}}', "_tf32 was not applied: this gputune has no such setting"),
            ('{"settings":{"../../evil":1}}', "../../evil was not applied: this gputune has no such setting"),
            ('{"settings":{"os":1}}', "os was not applied: this gputune has no such setting"),
            ('{"settings":{"channels_last":true}}', "channels_last was not applied: AttributeError"),
            ('{"settings":{"matmul_precision":"tf16"}}', "matmul_precision was not applied: set to tf16, but reads"),
            ('{"settings":{"matmul_precision":{"a":[1]}}}', "matmul_precision was not applied: set to"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_applied(self, site: Path, payload: str, fault: str) -> None:
        done = python("-c", SHOW, env=shimmed(site, payload))
        assert (done.returncode, done.stdout) == (0, UNTOUCHED)
        assert done.stderr.startswith(f"gputune: {fault}")
        assert done.stderr.count("\n") == 1

    def test_a_process_of_a_tune_that_did_not_get_its_assignment_ends(self, site: Path) -> None:
        done = python("-c", SHOW, env=shimmed(site, PAYLOAD[:-1] + ',"is_tuned":true}'))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "gputune: this run could not be begun: KeyError: 'GPUTUNE_TUNE'\n"

    def test_an_assignment_is_not_obeyed_below_another_apply(self, site: Path) -> None:
        assert run(SHOW, shimmed(site, GPUTUNE_TUNE="nonsense")) == APPLIED

    def test_a_process_of_a_tune_keeps_off_the_users_files_even_if_gputune_is_switched_off(
        self, site: Path, tmp_path: Path
    ) -> None:
        scratch, written = tmp_path / "own" / "scratch", tmp_path / "own" / "written"
        tune = Assignment(role="measure", socket="", scratch=str(scratch), written=str(written))
        code = f"open({str(tmp_path / 'made')!r}, 'w').close()"
        env = shimmed(site, GPUTUNE_TUNE=tune.text, GPUTUNE_DISABLE="1")
        run(code, env)
        assert not (tmp_path / "made").exists()
        assert list(scratch.rglob("made"))

    def test_above_copies_what_is_written_to_shared_memory_is_named(self, site: Path, tmp_path: Path) -> None:
        written, space = tmp_path / "written", tmp_path / "namespace"
        space.write_text(str(Path("/proc/self/ns/mnt").readlink()))
        tune = Assignment(role="measure", socket="", scratch="x", written=str(written), namespace=str(space))
        name, other = f"/dev/shm/gputune-test-{os.urandom(8).hex()}", str(tmp_path / "made")
        code = f"import os; open({name!r}, 'w').close(); os.remove({name!r}); open({other!r}, 'w').close()"
        run(code, shimmed(site, GPUTUNE_TUNE=tune.text))
        assert written.read_text() == f"{name}\n"

    def test_what_rests_on_another_torch_is_left_alone_and_told(self, site: Path) -> None:
        told = f"{SHOW}; import sys; print(*[row['status'] for row in sys.modules['_gputune.live.hook'].now()])"
        for version, answer in (("2.2.0", f"{APPLIED}applied applied\n"), ("2.13.0", "high False\nskipped applied\n")):
            assert run(told, shimmed(site, PAYLOAD[:-1] + f',"torch":"{version}"}}')) == answer

    def test_one_bad_setting_does_not_cost_the_others(self, site: Path) -> None:
        done = python("-c", SHOW, env=shimmed(site, PAYLOAD.replace('{"cudnn', '{"a":1,"cudnn')))
        assert done.stdout == APPLIED
        assert done.stderr == "gputune: a was not applied: this gputune has no such setting\n"

    def test_stderr_may_be_full_or_closed(self, site: Path) -> None:
        for redirection in ("2>/dev/full", "2>&-"):
            words = ["sh", "-c", f'"$0" -c "$1" {redirection}', sys.executable, SHOW]
            assert command(words, shimmed(site, "{")).stdout == UNTOUCHED

    def test_a_setting_that_torch_refuses_is_one_line(self, site: Path) -> None:
        with (site / "torch" / "__init__.py").open("a") as file:
            file.write("del backends.cudnn\n")
        done = python("-c", "import torch; print('fine')", env=shimmed(site))
        assert done.stdout == "fine\n"
        assert done.stderr.startswith("gputune: cudnn_benchmark was not applied: AttributeError: ")
        assert done.stderr.count("\n") == 1

    def test_deterministic_mode_wins(self, site: Path) -> None:
        with (site / "torch" / "__init__.py").open("a") as file:
            file.write("backends.cudnn.deterministic = True\n")
        code = f"import torch, sys; print({HOOK}.now()[0]['status'], torch.backends.cudnn.benchmark)"
        assert run(code, shimmed(site)) == "kept-user False\n"


class TestThreads:
    """Ranks below a launcher: 64 of them on the CPUs of this test have one each."""

    @pytest.fixture
    def ask(self, site: Path) -> Any:
        threads = "_n = [2]\ndef get_num_threads(): return _n[0]\ndef set_num_threads(n): _n[0] = n\n"
        (site / "torch" / "__init__.py").write_text(TORCH + threads)
        code = f"import torch, sys; row = {HOOK}.now()[0]; print(torch.get_num_threads(), row['status'], row['why'])"
        return lambda **more: run(code, shimmed(site, '{"settings":{"omp_threads":2}}', **more))

    def test_a_rank_has_its_share_of_the_cpus(self, ask: Any) -> None:
        share = "1 applied its share of the CPUs, right after import torch\n"
        assert ask(LOCAL_WORLD_SIZE="64") == share
        assert ask(LOCAL_WORLD_SIZE="64", OMP_NUM_THREADS="2") == share  # as exported for a shell script above it

    def test_what_the_launcher_or_the_user_exported_stays(self, ask: Any) -> None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            kept = ask(LOCAL_WORLD_SIZE="64", **{name: "7"})
            assert kept == f"2 kept-user already exported: {name}=7\n"

    def test_a_program_of_one_process_has_what_was_exported(self, ask: Any) -> None:
        assert ask(OMP_NUM_THREADS="2") == "2 applied through its environment variable\n"


class TestChain:
    @pytest.fixture
    def theirs(self, site: Path) -> Path:
        return site / "sitecustomize.py"

    def test_it_runs_once_and_is_the_one_in_sys_modules(self, site: Path, theirs: Path) -> None:
        theirs.write_text("import sys\nprint('theirs', sys.path[0])\nMINE = 1\n")
        values = "sitecustomize.MINE, sitecustomize.__file__, next(filter(None, sys.path))"
        code = f"import sitecustomize, sys; print({values}); {SHOW}"
        assert run(code, shimmed(site)) == f"theirs {site}\n1 {theirs} {SHIM}\n{APPLIED}"

    @pytest.mark.parametrize(
        "body",
        [
            "1 / 0",
            "import no_such_module",
            "raise ImportError('odd')",
            "raise SystemExit(3)",
            "raise KeyboardInterrupt",
        ],
    )
    def test_what_it_raises_is_shown_as_without_the_shim(self, site: Path, theirs: Path, body: str) -> None:
        theirs.write_text(body)
        with_shim = python("-c", SHOW, env=shimmed(site))
        without = python("-c", SHOW, env=environ(PYTHONPATH=str(site)))
        assert with_shim.returncode == without.returncode
        assert with_shim.stderr.splitlines()[:1] == without.stderr.splitlines()[:1]
        assert with_shim.stderr.splitlines()[-1:] == without.stderr.splitlines()[-1:]
        if without.returncode == 0:
            assert without.stderr
            assert with_shim.stderr == without.stderr
            assert (with_shim.stdout, without.stdout) == (APPLIED, UNTOUCHED)

    def test_what_it_puts_on_the_path_stays(self, site: Path, theirs: Path) -> None:
        theirs.write_text("import sys\nsys.path.insert(0, '/first')\nsys.path.append('/last')\n")
        out = run(
            "import sys; print(sys.path[1:3].count('/first'), sys.path[-1], sys.path.count(sys.path[1]))", shimmed(site)
        )
        assert out == "1 /last 1\n"

    def test_it_runs_though_the_shim_is_switched_off(self, site: Path, theirs: Path) -> None:
        theirs.write_text("print('theirs')")
        assert run(SHOW, shimmed(site, GPUTUNE_DISABLE="1")) == f"theirs\n{UNTOUCHED}"

    def test_importing_torch_there_is_followed(self, site: Path, theirs: Path) -> None:
        theirs.write_text("import torch")
        assert run(SHOW, shimmed(site)) == APPLIED


def interpreter(name: str) -> str | None:
    """The first Python of a name that runs: on PATH, else one that pyenv keeps."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*map(Path, os.get_exec_path()), *sorted(root.glob("versions/*/bin"))]
    paths = [str(folder / name) for folder in folders if (folder / name).exists()]
    return next((path for path in paths if command([path, "-c", ""]).returncode == 0), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["python2.7", *(f"python3.{minor}" for minor in range(5, 16))])
def test_other_pythons(name: str, site: Path) -> None:
    """From 3.11 on the settings are applied; older ones that import torch say one line, and run as they did."""
    path = interpreter(name)
    if path is None:
        pytest.skip(f"there is no {name} here")
    (site / "sitecustomize.py").write_text("import sys\nsys.stdout.write('theirs\\n')\n")
    (site / "plain.py").write_text("import sys, json\nsys.stdout.write('fine\\n')\n")
    version = tuple(map(int, name.removeprefix("python").split(".")))
    done = command([path, "-c", "import plain"], shimmed(site))
    assert (done.returncode, done.stdout, done.stderr) == (0, "theirs\nfine\n", "")
    if version >= (3, 4):
        done = command([path, "-c", SHOW], shimmed(site))
        too_old = f"gputune: settings were not applied: this is Python {name[6:]}, and gputune needs 3.11 or newer\n"
        assert (done.returncode, done.stderr) == (0, "" if version >= (3, 11) else too_old)
        assert done.stdout == "theirs\n" + (APPLIED if version >= (3, 11) else UNTOUCHED)
    missing = command([path, "-S", "-c", f"import sys; sys.path.insert(0, {SHIM!r}); import sitecustomize, torch"],
                      shimmed())  # fmt: skip
    assert (missing.returncode, "gputune: " in missing.stderr) == (1, False)
    alone = command([path, "-c", "import sys; sys.stdout.write('fine')"], shimmed())
    assert (alone.stdout, alone.stderr) == ("fine", "")

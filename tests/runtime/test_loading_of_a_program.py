"""A tuned program has its workers whatever its file is called, and whoever does not get what a profile has for a
program is told why: whole starts below `gputune apply`.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from making import ELSEWHERE, choices, command, environ, executable, profile, program
from torch import nn

from gputune.host import Host
from gputune.live.models import key, layers_of
from gputune.profile import Profile, save
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import torch
from torch import nn
from multiprocessing import parent_process
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, number):
        return torch.full((4,), float(number)), int(parent_process() is not None)

class Other(Images): ...

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(4, width), nn.Linear(width, 2)
    def forward(self, x):
        return self.second(self.first(x).relu())

def main(*words):
    torch.manual_seed(0)
    loaders = {kind.__name__: DataLoader(kind(), batch_size=2, shuffle=True) for kind in (Images, Other)}
    model = Net(6 if "wider" in words else 5)
    if "ddp" in words:
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for name in [one for one in words if one in loaders] or ["Images"]:
        for x, in_worker in loaders[name]:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
        print(name, "by workers" if in_worker.all() else "by itself")
    print("loss", loss.item(), torch.rand(1).item())

if __name__ in ("__main__", "notebook"):
    main(*sys.argv[1:])
"""
NOTEBOOK = "import sys; exec(compile(open('waits.py').read(), 'cell', 'exec'), {'__name__': 'notebook'})"


class Net(nn.Module):
    """As the script's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 2)


def tuned(*, older: bool = False, elsewhere: bool = False) -> Profile:
    here = local_fingerprint(Host())
    model, workers = key(Net()), {"dataloader_workers": 1}
    tuned = program(
        "waits.py", fingerprint=ELSEWHERE if elsewhere else here, settings=choices(workers), measurements=(),
        by_numerics={"exact": workers}, models=(model if older else replace(model, layers=layers_of(Net())),),
        dataset=None if older else "Images", input_shapes=((2, 4),),
    )  # fmt: skip
    return replace(profile({}), fingerprint=here, programs=(tuned,))


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        for name in ("waits.py", "renamed.py"):
            (path / name).write_text(SCRIPT)
        (path / "package").mkdir()
        (path / "package" / "waits.py").write_text(SCRIPT)
        console = f"#!{sys.executable}\nimport sys\nfrom waits import main\nsys.exit(main())\n"
        executable(path / "train-net", console)

    def run(self, made: Profile, *words: str, **variables: str) -> tuple[list[str], list[str]]:
        """What the command prints below `gputune apply`, and gputune's lines."""
        save(made, self.path / "profile.yaml")
        apply = [sys.executable, "-P", "-m", "gputune", "apply", "profile.yaml", "--"]
        done = command([*apply, *words], environ(PYTHONPATH=str(self.path), **variables), cwd=self.path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), [line for line in done.stderr.splitlines() if line.startswith("gputune: ")]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


PUT_IN = ["gputune: put into Net (mlp): dataloader_workers 1"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        (sys.executable, "waits.py"),
        (sys.executable, "renamed.py"),
        (sys.executable, "-m", "waits"),
        (sys.executable, "-m", "package.waits"),
        ("./train-net",),
        (sys.executable, "-c", NOTEBOOK),
    ],
)
def test_its_models_and_its_dataset_tell_it(folder: Folder, words: tuple[str, ...]) -> None:
    printed, said = folder.run(tuned(), *words)
    assert (printed[0], said) == ("Images by workers", PUT_IN)


def test_of_an_older_profile_its_models_alone(folder: Folder) -> None:
    printed, said = folder.run(tuned(older=True), sys.executable, "renamed.py", "Other")
    assert (printed[0], said) == ("Other by workers", PUT_IN)


def test_the_batches_and_the_random_numbers_are_those_of_a_plain_start(folder: Folder) -> None:
    plain = command([sys.executable, "waits.py"], environ(), cwd=folder.path).stdout.splitlines()
    [_, numbers], _ = folder.run(tuned(), sys.executable, "waits.py")
    assert plain == ["Images by itself", numbers]


def test_a_model_in_distributed_data_parallel_too(folder: Folder) -> None:
    assert folder.run(tuned(), sys.executable, "renamed.py", "ddp")[0][0] == "Images by workers"


def test_another_dataset_is_named(folder: Folder) -> None:
    printed, said = folder.run(tuned(), sys.executable, "waits.py", "Other")
    assert printed[0] == "Other by itself"
    assert len(said) == 1
    assert "left: dataloader_workers (tuned for a dataset Images, this is Other)" in said[0]


def test_of_two_loaders_the_one_with_its_dataset(folder: Folder) -> None:
    for order in (("Images", "Other"), ("Other", "Images")):
        printed, _ = folder.run(tuned(), sys.executable, "waits.py", *order)
        assert sorted(printed[:2]) == ["Images by workers", "Other by itself"]


@pytest.mark.parametrize(("older", "what"), [(False, "Net: 2 layers differ"), (True, "Net")])
def test_another_model_is_named_once(folder: Folder, older: bool, what: str) -> None:
    printed, said = folder.run(tuned(older=older), sys.executable, "renamed.py", "wider", GPUTUNE_REPORT="1")
    assert printed[0] == "Images by itself"
    assert said[0] == (
        f"gputune: profile.yaml has a program tuned for another model ({what}); tune this one: gputune tune -- CMD"
    )
    [report] = said[1:]
    why = "tuned for other models than this program's"
    assert report.endswith(f"dataloader_workers None: skipped (torch), {why}")


def test_a_program_of_another_machine_is_named_at_its_start_at_its_end_and_by_status(folder: Folder) -> None:
    made, how = tuned(elsewhere=True), "cpu (a CPU of another machine there, "
    _, said = folder.run(made, sys.executable, "waits.py", GPUTUNE_REPORT="1")
    assert [f"waits.py was tuned on another machine ({how}" in line for line in said] == [True, True]
    status = [sys.executable, "-P", "-m", "gputune", "status", "--json"]
    apply = [sys.executable, "-P", "-m", "gputune", "apply", "--strict", "profile.yaml", "--"]
    done = command([*apply, *status], environ(), cwd=folder.path)
    [found] = json.loads(done.stdout)["programs"]
    assert (done.returncode, found["entry"], found["settings"]) == (1, "waits.py", [])
    assert found["differences"][0].startswith(how)
    save(tuned(), folder.path / "profile.yaml")
    assert command([*apply, *status], environ(), cwd=folder.path).returncode == 0

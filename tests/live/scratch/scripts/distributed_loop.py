"""One process of torch.distributed saves its state in all ways of the distributed checkpoint, and loads it."""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter, async_save, load, save

torch.manual_seed(int(sys.argv[1]))
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    model = torch.nn.Linear(3, 2)
    early = FileSystemReader("written")
    save(model.state_dict(), checkpoint_id="states/one")
    dcp.save({"model": model.state_dict()}, storage_writer=FileSystemWriter(path="written"))
    async_save(model.state_dict(), checkpoint_id="asynchronous").result()

    def loaded(**where):
        state = {name: torch.zeros_like(one) for name, one in model.state_dict().items()}
        load(state, **where)
        return all(state[name].equal(one) for name, one in model.state_dict().items())

    assert loaded(checkpoint_id="states/one")
    assert loaded(checkpoint_id="asynchronous")
    assert loaded(storage_reader=FileSystemReader("states/one"))
    for reader in (early, FileSystemReader("written")):
        state = {"model": {name: torch.zeros_like(one) for name, one in model.state_dict().items()}}
        dcp.load(state, storage_reader=reader)
        assert state["model"]["weight"].equal(model.weight)
    dist.destroy_process_group()

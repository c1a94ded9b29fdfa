"""Lightning fits a tiny model, with a ModelCheckpoint of its own and everything else as it is by default."""

import importlib
import sys

import torch

lightning = importlib.import_module(sys.argv[1])
callbacks = importlib.import_module(f"{sys.argv[1]}.callbacks")
lightning.seed_everything(int(sys.argv[-1]), verbose=False)


class Line(lightning.LightningModule):
    def __init__(self, width=3):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(width, 1)

    def training_step(self, batch, _):
        loss = self.layer(batch).square().mean()
        self.log("loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(epochs, **more):
    return lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", devices=1, enable_progress_bar=False, enable_model_summary=False,
        log_every_n_steps=1, **more,
    )  # fmt: skip


data = torch.utils.data.DataLoader(torch.randn(16, 3), batch_size=4)
saved = callbacks.ModelCheckpoint(dirpath="checkpoints", monitor="loss", save_top_k=1, save_last=True)
own = trainer(3, callbacks=[saved])
model = Line()
own.fit(model, data)
assert saved.best_model_path
assert Line.load_from_checkpoint(saved.best_model_path).hparams.width == 3
own.save_checkpoint("final.ckpt")
assert Line.load_from_checkpoint("final.ckpt").layer.weight.equal(model.layer.weight)
assert torch.load("final.ckpt", weights_only=False)["epoch"] == 3

longer = trainer(4, callbacks=[callbacks.ModelCheckpoint(dirpath="checkpoints", monitor="loss", save_top_k=1)])
longer.fit(Line(), data, ckpt_path="checkpoints/last.ckpt")
assert longer.current_epoch == 4
trainer(1).fit(Line(), data)
loggers = importlib.import_module(f"{sys.argv[1]}.loggers")
trainer(1, logger=loggers.CSVLogger("logs"), enable_checkpointing=False).fit(Line(), data)
trainer(1, default_root_dir="root").fit(Line(), data)

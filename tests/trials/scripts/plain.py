"""A plain training."""

import training

for _ in training.forever(*training.parts()):
    pass

"""Asks whether to begin."""

import training

if input("begin? ") == "y":
    for _ in training.forever(*training.parts()):
        pass

"""Prints a megabyte with every step."""

import sys

import training

for _ in training.forever(*training.parts()):
    sys.stdout.write("x" * 999 * 1000 + "\n")

"""Ignores the signals that end programs, and has handlers."""

import signal

import training

signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, lambda *_: print("not now"))
signal.signal(signal.SIGHUP, lambda *_: print("nor now"))
for _ in training.forever(*training.parts()):
    pass

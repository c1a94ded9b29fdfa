"""The part of a tune inside the program's process, which obeys gputune; that decides outside of it.

Messages are lines of JSON on a Unix socket: a pipe would not survive torchrun, which closes descriptors. Between two
training steps the process answers for the steps behind it and waits for its next order, so that all ranks of a job
switch at the same step without a word between them.
"""

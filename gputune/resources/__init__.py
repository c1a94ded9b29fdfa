"""What a process has to load data with: CPUs, shared memory, a folder for temporary files, and what a sample costs.

Standard library and relative imports only: besides gputune, interpreters load it that must not see gputune.
"""

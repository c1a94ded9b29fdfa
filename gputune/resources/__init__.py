"""The resources for loading data: CPUs, shared memory, a folder for temporary files, and the cost of a sample.

Standard library and relative imports only, because it is also loaded in interpreters that must not see gputune.
"""

"""What any interpreter needs: CPUs, shared memory, temporary files, the cost of a sample, messages to other processes.

Standard library and relative imports only, because it is also loaded in interpreters that must not see gputune.
"""

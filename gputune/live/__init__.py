"""Runs in the user's process: the shim that waits for `import torch`, and the hook that then applies settings.

It imports only the standard library and its neighbours (relatively), and torch inside functions. In the user's
interpreter this folder, `settings` and `resources` are loaded below one private parent, `_gputune`, so that the
program's own `import gputune` stays clean.
"""

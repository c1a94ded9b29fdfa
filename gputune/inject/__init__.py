"""What is carried into the user's process: the shim that follows torch's import, and what applies settings there.

Standard library, relative imports, and torch inside functions only. In the user's interpreter this folder, `settings` and
`resources` are loaded below one private parent, `_gputune`, so that the program's own `import gputune` stays clean.
"""

"""The files that `gputune deploy` prints: one module each, a pure function from options to text."""

IMAGE = "gputune"
"""The default image: what `docker build -t gputune .` builds."""

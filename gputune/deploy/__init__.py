"""The files that `gputune deploy` prints: one template a file, pure, from options to text."""

from gputune.version import __version__

IMAGE = f"gputune:{__version__}"
"""What `docker build -t` is told to name the image of this version."""

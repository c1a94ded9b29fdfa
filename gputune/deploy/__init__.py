"""The files that `gputune deploy` prints: one template a file, pure, from options to text."""

IMAGE = "gputune"
"""What `docker build -t gputune .` makes, where no other is named."""

"""Applying a profile to a command (`environment`, `launch`) or to this process (`tuning`), and reading it back."""

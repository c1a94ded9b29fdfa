"""Applying a profile: to a command (`environment`, `launch`, the shim) or to this process (`tuning`)."""

"""Which combination of settings is fastest: what is tried, in which order, for how long, and what is chosen.

Pure: time and samples come in. The benches of reference networks, `gputune tune` and a program that is tuned while it
runs all use it.
"""

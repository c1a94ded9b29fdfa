"""Which combination of settings is fastest: what is tried, in which order, for how long, and what is chosen.

Pure: time and samples come in. The benches of reference networks, the advice that rests on them, and `gputune tune` use
it.
"""

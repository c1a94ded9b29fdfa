"""`gputune tune`: the runs of a user's program, what is tried in them, the guard, and the verdict."""

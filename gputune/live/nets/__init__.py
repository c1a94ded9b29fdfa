"""Nets below a program into which settings are put: each keeps one kind of harm from it. One guard a file."""

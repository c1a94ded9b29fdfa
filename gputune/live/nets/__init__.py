"""Safety nets under a program in which settings are on: what each finds turns settings off. One net a file."""

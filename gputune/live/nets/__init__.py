"""Safety nets under a program in which settings are on: what each finds turns settings off. One net a file."""


class Found(RuntimeError):
    """What a net finds within a call, which is then made again without the settings that may be to blame."""

"""What is raised where the machine does not answer."""


class Unreadable(Exception):
    """Something could not be read; the text is the reason that a Gap will show."""

"""Does this process's user id have a name?

`docker run --user 1234` starts a user that the image's /etc/passwd does not list. Python's getpass.getuser() then
fails, and with it torch.compile before torch 2.13, which names its cache after the user. Set USER, or the cache's
folder itself.

Source: torch._inductor, default_cache_dir; Python, getpass.getuser.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning
from gputune.checks._questions import number
from gputune.checks._remedies import typed

FIXED = (2, 13)


def check(facts: Facts, measurements: Measurements) -> Findings:
    process, torch = facts.process, number(facts.libraries.torch)
    if process.uid is None:
        yield unread(facts, "process.user", "the user")
    elif process.user is not None:
        yield ok(f"user {process.user} ({process.uid})")
    elif process.user_variable is not None or "TORCHINDUCTOR_CACHE_DIR" in facts.environment:
        yield ok(f"user id {process.uid} has no name, but the environment has what is needed instead")
    elif torch is not None and torch >= FIXED:
        yield ok(f"user id {process.uid} has no name, which torch {facts.libraries.torch} does not need")
    else:
        note = "or start the container with docker run --env USER=user IMAGE"
        remedy = typed(f"export USER=uid{process.uid}", note=note)
        yield warning(f"user id {process.uid} has no name: torch.compile fails, and other libraries may", remedy)

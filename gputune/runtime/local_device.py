"""Whether this machine has the device of a profile, as far as files tell: no driver is asked, which may hang."""

from contextlib import suppress

from gputune.facts.cpu_list import model
from gputune.facts.visible_gpus import device_files, forbidden_files
from gputune.host import Host, Unreadable
from gputune.profile import Fingerprint


def lacks_device(host: Host, measured: Fingerprint) -> bool:
    """Whether the device that was measured is certainly not here: a GPU where there is none of any kind, or another
    model of CPU. Which GPU there is only its driver knows.
    """
    if measured.gpu:
        return not device_files(host) and not forbidden_files(host)
    with suppress(Unreadable):
        return measured.cpu is not None and model(host) != measured.cpu
    return False

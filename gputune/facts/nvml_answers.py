"""All that NVML says about a machine, read once, while torch is imported in another process."""

from gputune.facts import driver, gpu
from gputune.facts.driver import Driver
from gputune.facts.gap import Gaps
from gputune.facts.gpu import Gpu
from gputune.facts.gpu_device_files import device_files
from gputune.host import Host, Nvml, NvmlAbsent, Unreadable
from gputune.host.nvml import BREAKING

_TELLING = ("version_mismatch", "unknown_error", *BREAKING)
"""The causes for which NVML's absence shows that there is a driver to ask."""


class NvmlAnswers:
    """NVML starts to come up when this is made; `read` waits for it and asks everything, the driver's versions first: a
    GPU may hang, and nothing is asked after that.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.gaps = Gaps()
        self.gpus: tuple[Gpu, ...] = ()
        self.driver: Driver | None = None
        self._absent: Unreadable | None = None
        self._begun: Nvml | None = None
        try:
            self._begun = host.nvml()
        except Unreadable as fault:
            self._absent = fault

    def read(self) -> Driver:
        """Ask NVML, and read what the kernel says of the driver; only the first call does."""
        if self.driver is None:
            nvml = self._up()
            self.driver = driver.read(self._host, nvml, self.gaps)
            self.gpus = gpu.listed(nvml, self.gaps) if nvml else ()
        return self.driver

    def has_broken(self) -> bool:
        """Ask NVML, and return whether it hung or crashed."""
        self.read()
        causes = [gap.cause for gap in self.gaps.found] + ([self._absent.cause] if self._absent else [])
        return any(cause in BREAKING for cause in causes)

    def note_absence(self, gpu_seen: bool) -> None:
        """Make NVML's absence a gap, but only on a machine with a GPU, which torch may have seen, or with a driver."""
        if self._absent and (gpu_seen or device_files(self._host) or self._absent.cause in _TELLING):
            self.gaps.add("driver.nvml", str(self._absent), self._absent.cause)

    def _up(self) -> Nvml | None:
        """NVML once it has come up, or None."""
        if self._begun is None:
            return None
        try:
            self._begun.count()
        except NvmlAbsent as fault:
            self._absent = fault
            return None
        except Exception:  # noqa: S110 - it is the count that cannot be read, which becomes a gap where it is asked for
            pass
        return self._begun

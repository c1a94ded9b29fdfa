"""Are the driver's kernel module and its libraries of one version?

After an update of the driver the old kernel module stays loaded until it is reloaded, and NVML and CUDA refuse it: "Driver/
library version mismatch". A container started before the update keeps the old libraries. Reboot the host; or stop all that
uses the GPUs, services such as nvidia-persistenced among it, and reload the module. Then start the containers anew.

Source: NVML, NVML_ERROR_LIB_RM_VERSION_MISMATCH; /proc/driver/nvidia/version.
"""

from gputune.checks._answers import error, not_applicable, ok, unknown, unread
from gputune.checks._common import Facts, Finding, Findings, Measurements, gpu_beside, reason

RELOAD = "reboot the host, then start the container anew"


def check(facts: Facts, measurements: Measurements) -> Findings:
    yield _finding(facts)


def _finding(facts: Facts) -> Finding:
    kernel, user, why = facts.driver.kernel_version, facts.driver.version, reason(facts, "driver.nvml")
    if why and "version mismatch" in why.lower():
        return error(
            f"the loaded kernel module ({kernel or 'version unknown'}) is not of the libraries' version: {why}", RELOAD
        )
    if not gpu_beside(facts):
        return not_applicable("no NVIDIA driver is in use here")
    if user is None:
        fact = "driver.version" if facts.driver.nvml else "driver.nvml"
        return unread(facts, fact, "the version of the driver's libraries")
    return _compare(facts, kernel, user)


def _compare(facts: Facts, kernel: str | None, user: str) -> Finding:
    if kernel is None and "/dev/dxg" in facts.container.gpu_device_files:
        return not_applicable(f"libraries {user}; in WSL the kernel's part is Windows' own")
    if kernel is None:
        return unknown(f"libraries {user}; the kernel module's version could not be read")
    if kernel != user:
        return error(f"the loaded kernel module is {kernel}, the driver's libraries are {user}", RELOAD)
    return ok(f"kernel module and libraries are both {user}")

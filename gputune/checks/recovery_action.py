"""Does NVML say that this GPU has to be reset, drained or rebooted before it works again?

After an error that it cannot mend by itself the driver names what would: until then programs on the GPU fail, or new
ones cannot start. `nvidia-smi -q` shows it as `GPU Recovery Action`. Do what it says, on the host and with no job left
there, and have a card replaced that asks again and again. Older drivers do not say.

Source: NVIDIA, GPU Memory Error Management, Error Recovery and Response Flags; nvmlDeviceGpuRecoveryAction_t.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, error, ok, warning
from gputune.checks._questions import share
from gputune.checks._remedies import address_of, on_host, reset, typed

REBOOT = on_host(
    "sudo systemctl reboot",
    ends_jobs=True,
    changes_node=True,
    note="first drain the node; if it asks again, power-cycle it",
)
IMEX = "recover IMEX domain"
RESTART_IMEX = typed(
    "sudo systemctl restart nvidia-imex", where="on every host of its NVLink domain", root=True, ends_jobs=True,
)  # fmt: skip


@each_gpu("recovery_action", lacking=lambda gpu: share(gpu) or "this driver does not tell; newer ones do")
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    action = gpu.health.recovery_action or ""
    if action == "none":
        return ok("no recovery is needed")
    message = f"NVML asks for its recovery: {action}"
    if action == IMEX:  # the GPU itself works, only not together with those of other hosts
        return warning(message, RESTART_IMEX)
    return error(message, _remedy(gpu, action))


def _remedy(gpu: Gpu, action: str) -> str:
    if action == "gpu reset":
        return reset(gpu)
    if action == "drain and reset":
        return reset(gpu, note="end the jobs of all GPUs that exchange data with it too")
    if action == "drain P2P":
        return on_host(
            "sudo fuser -v /dev/nvidia*",
            f"nvidia-smi -q -i {address_of(gpu)} | grep Recovery",
            note="end the processes that exchange data with this GPU; then it asks for something else, or nothing",
        )
    return REBOOT  # of the bus as well, for which nvidia-smi has no command

"""Was this container started without the GPUs that its host has?

NVIDIA_VISIBLE_DEVICES tells the container toolkit which GPUs to make available; void and none stand for no GPU. Start
the container with `--gpus all`, or set the variable to `all` or to a list. In Kubernetes a pod that requests no GPU
gets void, as intended, and so does a pod whose GPUs come by the Container Device Interface.

Source: NVIDIA Container Toolkit, environment variables.
"""

from gputune.checks._answers import Facts, Findings, Measurements, counted, not_applicable, ok, unread, warning
from gputune.checks._questions import has_gpu
from gputune.checks._remedies import typed

REMEDY = typed(
    "docker run --gpus all IMAGE",
    where="on the host, beside its other options",
    note="or --gpus 1 for one of them; in a Kubernetes manifest: resources: {limits: {nvidia.com/gpu: 1}}",
)


def check(facts: Facts, measurements: Measurements) -> Findings:
    value = facts.environment.get("NVIDIA_VISIBLE_DEVICES")
    setting = f"NVIDIA_VISIBLE_DEVICES={value}" if value is not None else "NVIDIA_VISIBLE_DEVICES is not set"
    host = [gpu for gpu in facts.pci_gpus or () if gpu.driver == "nvidia"]
    if has_gpu(facts):
        yield ok(f"{setting}, and there is a GPU")
    elif facts.container.forbidden_device_files:
        yield not_applicable(f"{setting}; there are device files of GPUs that may not be opened: see gpu_absent")
    elif facts.pci_gpus is None:
        yield unread(facts, "pci_gpus", f"{setting}; whether the host has a GPU")
    elif value in ("void", "none", "") and host and facts.container.kind != "kubernetes":
        message = f"{setting} keeps the host's {counted(len(host), 'GPU')} out of this container"
        yield warning(message, REMEDY, "NVIDIA_VISIBLE_DEVICES")
    else:
        has = f"the host has {counted(len(host), 'GPU')}, this container none" if host else "the host has no NVIDIA GPU"
        yield not_applicable(f"{setting}; {has}")

"""The environment variables that change how torch and NVIDIA's libraries run."""

import re
from collections.abc import Collection

from gputune.host import Host

TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""0 forbids cuBLAS and cuDNN to use TF32, and 1 forces it on matmuls and RNNs, whatever torch's flags say."""

_SANITIZER = re.compile(r"NV_SANITIZER_INJECTION_\w{1,40}")
"""compute-sanitizer numbers ports in more variables than it documents."""


def read(host: Host, variables: Collection[str] = ()) -> dict[str, str]:
    """Values of `variables` and of those allowed by full name, sorted: they are printed, and secrets have any name."""
    from gputune.facts.environment_names import NAMES

    environ = host.environ
    kept = (NAMES | set(variables)) & set(environ)
    kept |= {name for name in environ if _SANITIZER.fullmatch(name) and re.fullmatch("[0-9]{1,5}", environ[name])}
    return {name: environ[name] for name in sorted(kept)}

"""The precision that FP32 operations really run in, judged by their numerical error.

NVIDIA_TF32_OVERRIDE beats torch's flags in both directions, cuBLAS and cuDNN read it once in a process, and no flag
shows it. So each operation is compared with float64, under flags set each way; run as a module, in a process of its
own: `python -m gputune.benches._truth DEVICE` prints the errors as JSON.
"""

import json
import sys

from gputune.benches._fp32_errors import errors
from gputune.settings import _tf32

FLAGS = {"on": True, "off": False}
"""By name, whether TF32 is allowed: for matmuls, convolutions and RNNs alike."""


def errors_under(device: str, allow: bool) -> dict[str, float]:
    """The relative error of each operation with TF32 allowed or not."""
    _tf32.set_matmul(allow)
    _tf32.set_cudnn(allow)
    return errors(device)


if __name__ == "__main__":
    print(json.dumps({flags: errors_under(sys.argv[1], allow) for flags, allow in FLAGS.items()}))

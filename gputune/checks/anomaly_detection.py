"""Is autograd's anomaly detection on?

It keeps a traceback for every operation and looks for NaN in every gradient, so that steps take several times as long.
If it is on right after import, a sitecustomize or a similar hook turns it on for every program.

Source: PyTorch, torch.autograd.set_detect_anomaly.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unread, warning


def check(facts: Facts, measurements: Measurements) -> Findings:
    flags = facts.precision.flags
    if flags is None or flags.anomaly_detection is None:
        yield unread(facts, "libraries.flags", "torch's flags")
    elif flags.anomaly_detection:
        message = "autograd looks for anomalies, which makes steps several times slower"
        yield warning(message, "torch.autograd.set_detect_anomaly(False)")
    else:
        yield ok("autograd's anomaly detection is off")

"""The variables by which experiment trackers are switched off by their own means.

Sources: the documentation of Weights & Biases, SwanLab, Comet (configuration `auto_log.disable`), MLflow (tracking URI)
and transformers (its integration of MLflow). Neptune's two packages take different words, and ClearML's offline mode
still writes below the home folder: both are left alone.
"""

from collections.abc import Mapping


def variables(folder: str) -> Mapping[str, str]:
    """For an environment in which trackers record nothing; what MLflow must write goes below `folder`."""
    return {
        "WANDB_MODE": "disabled",
        "SWANLAB_MODE": "disabled",
        "COMET_AUTO_LOG_DISABLE": "1",
        "DISABLE_MLFLOW_INTEGRATION": "TRUE",
        "MLFLOW_TRACKING_URI": f"file://{folder}/mlruns",
    }

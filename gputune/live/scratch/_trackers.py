"""The variables by which experiment trackers are switched off by their own means.

Each was tried with the tracker itself: wandb, SwanLab, Comet (the configuration `auto_log.disable`) and CodeCarbon then
record nothing. MLflow, Neptune (both of its packages) and ClearML cannot be switched off without a change to the
program, and record below a folder instead of sending anything. MLflow 3 refuses to record in files unless that is
allowed. TensorBoard has no variable. What a program gives to a tracker in a call goes before its variables.
"""

from collections.abc import Mapping

OFF: Mapping[str, str] = {
    "WANDB_MODE": "disabled",
    "SWANLAB_MODE": "disabled",
    "COMET_AUTO_LOG_DISABLE": "1",
    "CODECARBON_SAVE_TO_FILE": "false",
    "DISABLE_MLFLOW_INTEGRATION": "TRUE",  # that of transformers
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
}
"""The variables that switch trackers off, whatever the folder."""


def variables(folder: str) -> Mapping[str, str]:
    """For an environment in which trackers send nothing; what some of them must write goes below `folder`."""
    return {
        **OFF,
        "MLFLOW_TRACKING_URI": f"file://{folder}/mlruns",
        "NEPTUNE_DATA_DIRECTORY": f"{folder}/neptune",
        "NEPTUNE_LOG_DIRECTORY": f"{folder}/neptune",
        "CLEARML_CACHE_DIR": f"{folder}/clearml",
    }

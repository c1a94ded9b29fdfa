"""The variables that switch trackers off."""

from gputune.live.scratch import _trackers


def test_all_is_text_and_paths_lie_in_the_folder() -> None:
    variables = _trackers.variables("/scratch")
    assert variables.items() > _trackers.OFF.items()
    assert all(isinstance(value, str) for value in variables.values())
    assert all("/scratch/" in value for name, value in variables.items() if name not in _trackers.OFF)
    assert variables["MLFLOW_TRACKING_URI"] == "file:///scratch/mlruns"

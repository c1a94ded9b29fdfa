"""The part of a profile that `Tuning.dataloader_kwargs` needs to adapt its choices to another process and dataset."""

from gputune.inject.loading import SAMPLES, WORKERS, Measured
from gputune.profile import Profile
from gputune.settings.dataloader_workers import bench_of


def measured_loading(profile: Profile) -> Measured:
    """Read from the profile's measurements how data was loaded."""
    own = [row for row in profile.measurements if row.bench == "dataset"]
    general = profile.settings[WORKERS].value if WORKERS in profile.settings else None
    cpus = profile.fingerprint.cpu_budget
    # With a training step to feed, or so many workers that they must have waited, more CPUs would not help.
    fed = any("step_ms" in row.params for row in own) or (isinstance(general, int) and cpus and general > 2 * cpus)
    return Measured(
        cpu_budget=cpus,
        workers_by_kind={
            kind: value
            for kind in SAMPLES
            if isinstance(value := getattr(profile.families.get(kind, {}).get(WORKERS), "value", None), int)
        },
        own_dataset=bench_of(profile.measurements) == "dataset",
        cpus_bound=not fed,
        batch_bytes=int(max((max(row.samples) for row in own if row.metric == "batch_bytes"), default=0)),
    )

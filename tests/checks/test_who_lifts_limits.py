"""Who can lift a limit depends on who has set it: the pod, the container, the job, systemd, or a group's file."""

from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import _remedies


def remedy(kind, file, *, container=None, scheduler=None):
    facts = facts_of("cpu-only")
    facts = replace(facts, container=replace(facts.container, kind=container))
    return _remedies.more(replace(facts, scheduler=replace(facts.scheduler, name=scheduler)), kind, file)


@pytest.mark.parametrize(
    ("kind", "where", "told"),
    [
        ("cpu", {"container": "docker"}, "docker run --cpus=2 IMAGE"),
        ("memory", {"container": "podman"}, "podman run --memory=1g IMAGE"),
        ("cpu", {"container": "kubernetes"}, 'limits: {cpu: "2"}'),
        ("memory", {"container": "kubernetes", "scheduler": "kubernetes"}, "limits: {memory: 1Gi}"),
        ("cpu", {"container": "lxc"}, "this container again with more CPUs"),
        ("cpu", {"scheduler": "slurm", "container": "apptainer"}, "#SBATCH --cpus-per-task=2"),
        ("memory", {"scheduler": "slurm"}, "#SBATCH --mem=1G"),
        ("memory", {"scheduler": "pbs"}, "submit the job again with more memory"),
    ],
)
def test_a_container_and_a_job_ask_who_started_them(kind, where, told):
    assert told in remedy(kind, "/sys/fs/cgroup/cpu.max", **where)


@pytest.mark.parametrize(
    ("kind", "file", "command"),
    [
        ("cpu", "/sys/fs/cgroup/system.slice/x@1.service/cpu.max", "systemctl set-property x@1.service CPUQuota="),
        ("memory", "/sys/fs/cgroup/user.slice/memory.max", "systemctl set-property user.slice MemoryMax=infinity"),
        ("cpu", "/sys/fs/cgroup/mine/cpu.max", "tee /sys/fs/cgroup/mine/cpu.max"),
        ("cpu", "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "tee /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us"),
        ("memory", "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "echo -1 | sudo tee"),
    ],
)
def test_elsewhere_it_is_a_command(kind, file, command):
    assert command in remedy(kind, file)
    assert "  # as root; changes the node; lifts the " in remedy(kind, file)


@pytest.mark.parametrize("file", [None, "/sys/fs/cgroup/$(reboot)/cpu.max", "/sys/fs/cgroup/mine/other"])
def test_no_command_is_made_of_an_odd_name(file):
    assert remedy("cpu", file) == "ask whoever set the limit for more CPUs"

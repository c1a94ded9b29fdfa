"""The CPUs that this process may use: quotas, threads, what Slurm and a pod give, and what others use."""

from recorded import EIGHT, RecordedHost, says, table
from trees import CGROUP

QUOTA, STAT = f"{CGROUP}/cpu.max", f"{CGROUP}/cpu.stat"


def quota(severity, text, message="", remedy="", threads=16, **environ):
    torch = {"threads": threads}
    return says(severity, message, remedy, files={QUOTA: text}, environ=environ, torch=torch)


test_cpu_quota = table(
    "cpu_quota",
    {
        f"{given} CPUs": quota(
            "WARNING",
            text,
            f"=the quota allows {given} CPUs, but torch and the DataLoader count 16",
            f"=export OMP_NUM_THREADS={budget}  # and give DataLoader num_workers={budget} or less",
        )
        for text, given, budget in [("250000 100000", "2.5", 2), ("100000 100000", "1", 1)]
    },
    {
        f"a tenth of a CPU for {threads} threads": quota(
            "WARNING", "10000 100000", "0.1 of a CPU",
            "=docker run --cpus=2 IMAGE  # on the host, beside its other options; up to twice as much as now", threads,
        )
        for threads in (1, 16)
    },
    {
        "the file is the subject": says("WARNING", subject=QUOTA, files={QUOTA: "250000 100000"}),
        "of less than one CPU, too": says("WARNING", subject=QUOTA, files={QUOTA: "10000 100000"}),
        "a core of two CPUs gets one thread": quota(
            "WARNING", "400000 100000",
            "=the quota allows 4 CPUs, but torch starts 8 threads and the DataLoader counts 16", "OMP_NUM_THREADS=4 ",
            threads=8,
        ),
        "torch's threads keep to it": quota(
            "OK", "250000 100000", "=the quota allows 2.5 of 16 CPUs, and torch starts 2 threads", threads=2
        ),
        "ranks share it": quota("WARNING", "800000 100000", "", "OMP_NUM_THREADS=2 ", LOCAL_WORLD_SIZE="4"),
    },
    {f"all CPUs: {text}": quota("OK", text) for text in ("max 100000", "1600000 100000", "6400000 100000")},
    {
        # Only the first version of control groups writes -1 for no limit, in another file.
        f"not read: {text!r}": quota("UNKNOWN", text, repr(text))
        for text in ("garbage", "-1", "-1 100000", "", "max100000")
    },
)  # fmt: skip


def stopped(severity, times, periods=10_000, message="", *, remedy="", text="400000 100000", stat=..., **environ):
    told = f"usage_usec 5\nnr_periods {periods}\nnr_throttled {times}\nthrottled_usec 9\n"
    files = {QUOTA: text, STAT: told if stat is ... else stat}
    return says(severity, message, remedy, files=files, environ=environ)


def told_stopped(times, periods):
    return f"=stopped in {times} of {periods} periods, having used up its quota of 4 CPUs"


test_cpu_throttled = table(
    "cpu_throttled",
    {
        f"{times} of {periods}": stopped(
            "WARNING", times, periods, told_stopped(times, periods),
            remedy=("^export OMP_NUM_THREADS=4 ", "docker run --cpus=8 IMAGE"),
        )
        for times, periods in [(101, 10_000), (10_000, 10_000), (5, 499), (5, 5)]
    },
    {
        f"{times} of {periods}": stopped("OK", times, periods, told_stopped(times, periods))
        for times, periods in [(0, 10_000), (100, 10_000), (5, 500), (4, 4), (0, 0)]
    },
    {
        "ranks share the remedy": stopped("WARNING", 5000, remedy="^export OMP_NUM_THREADS=2 ", LOCAL_WORLD_SIZE="2"),
        "no quota": stopped("NOT_APPLICABLE", 5000, text="max 100000"),
        "an odd quota": stopped("UNKNOWN", 0, message="garbage", text="garbage"),
        "the file is the subject": says(
            "WARNING", subject=QUOTA, files={QUOTA: "400000 100000", STAT: "nr_periods 9\nnr_throttled 9\n"}
        ),
    },
    {
        f"not read: {stat!r}": stopped("UNKNOWN", 0, message=STAT, stat=stat)
        for stat in (None, "usage_usec 5\n", "nr_periods 7\nnr_throttled many\n")
    },
)  # fmt: skip


def threads(severity, count, message="", remedy="", ranks="1", *, cpus=16, text="max 100000", **environ):
    return says(
        severity, message, remedy, torch={"threads": count}, environ={"LOCAL_WORLD_SIZE": ranks, **environ},
        affinity=range(cpus), files={QUOTA: text},
    )  # fmt: skip


GRANT = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "4"}
test_thread_count = table(
    "thread_count",
    {
        f"{count} on {cpus}": threads(
            "WARNING", count, f"=torch starts {count} threads, but may use only {cpus} for them",
            f"=export OMP_NUM_THREADS={number}", cpus=number,
        )
        for count, number, cpus in [(17, 16, "16 CPUs"), (5, 4, "4 CPUs"), (2, 1, "1 CPU")]
    },
    {
        "all ranks together": threads(
            "WARNING", 5, "=torch starts 5 threads in each of 4 ranks, but may use only 4 CPUs for them",
            "=export OMP_NUM_THREADS=4", "4",
        ),
        "a grant, not bound": threads("OK", 4, **GRANT),
        "beyond a grant, not bound": threads("WARNING", 5, **GRANT),
        "a grant, bound to its own": threads("OK", 4, ranks="4", cpus=4, **GRANT),
        "beyond a grant, bound to its own": threads("WARNING", 5, ranks="4", cpus=4, **GRANT),
        "a quota is another check's matter": threads("OK", 16, text="200000 100000"),
        "the remedy heeds the quota": threads("WARNING", 17, "", "=export OMP_NUM_THREADS=2", text="200000 100000"),
        "MKL's own variable would win": threads(
            "WARNING", 17, "", "=unset MKL_NUM_THREADS && export OMP_NUM_THREADS=16", MKL_NUM_THREADS="17"
        ),
        "without a GPU": says("WARNING", machine="cpu-only", torch={"threads": 3}),
    },
    {
        f"{told} in each of {ranks}": threads("OK", count, f"=torch starts {told}, and may use {cpus}", ranks=ranks)
        for count, ranks, told, cpus in [
            (16, "1", "16 threads", "16 CPUs"), (1, "1", "1 thread", "16 CPUs"), (4, "4", "4 threads", "4 CPUs"),
            (1, "16", "1 thread", "1 CPU"),
        ]
    },
)  # fmt: skip


def rank(severity, ranks, message="", remedy="", **environ):
    environ = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": ranks, **environ}
    return says(severity, message, remedy, environ=environ)


test_torchrun_threads = table(
    "torchrun_threads",
    {
        f"{ranks} ranks": rank(
            "WARNING",
            ranks,
            f"1 thread, although there are {cpus} CPUs for each",
            f"=export OMP_NUM_THREADS={cpus}  # before torchrun starts",
            OMP_NUM_THREADS="1",
        )
        for ranks, cpus in [("2", 8), ("4", 4), ("8", 2)]
    },
    {
        f"{ranks} ranks": rank("OK", ranks, "=each rank has 1 CPU, and OMP_NUM_THREADS is 1", OMP_NUM_THREADS="1")
        for ranks in ("16", "64")
    },
    {
        "chosen": rank("OK", "4", "=each rank has 4 CPUs, and OMP_NUM_THREADS is 4", OMP_NUM_THREADS="4"),
        "not set": rank("OK", "4", "=each rank has 4 CPUs, and OMP_NUM_THREADS is not set"),
        "a rank alone": rank("NOT_APPLICABLE", "1"),
        "a rank alone with one thread": rank("NOT_APPLICABLE", "1", OMP_NUM_THREADS="1"),
        "not torchrun": says("NOT_APPLICABLE", environ={"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "4"}),
    },
)

JOB = {"SLURM_JOB_ID": "7"}


def task(severity, message="", remedy="", cpus=16, machine=None, **environ):
    more = {} if machine else {"affinity": range(cpus)}
    return says(severity, message, remedy, environ={**JOB, **environ}, machine=machine, **more)


TASKS = {"SLURM_STEP_TASKS_PER_NODE": "4", "SLURM_JOB_GPUS": "0"}
ONE_CORE = "granted {}, but only one core to each task"
test_slurm_cpus = table(
    "slurm_cpus",
    {
        f"{granted} {cpus} {value}": task(
            "WARNING", ONE_CORE.format(told), "^#SBATCH --cpus-per-task=16 ", cpus,
            **{variable: value, "SLURM_CPUS_PER_TASK": granted},
        )
        for granted, cpus in [("1", 16), ("1", 1), (None, 1), (None, 2)]
        for variable, value, told in [
            ("SLURM_STEP_GPUS", "0,1", "GPU 0,1"), ("SLURM_JOB_GPUS", "3", "GPU 3"),
            ("SLURM_GPUS_ON_NODE", "8", "8 GPUs"),
        ]
    },
    {
        f"{granted} {cpus}": task(
            "OK", f"=each task may use {told}", cpus=cpus, SLURM_CPUS_PER_TASK=granted, SLURM_JOB_GPUS="0"
        )
        for granted, cpus, told in [
            ("2", 2, "2 CPUs"), ("8", 16, "8 CPUs"), ("16", 8, "8 CPUs"), (None, 3, "3 CPUs"), (None, 16, "16 CPUs")
        ]
    },
    {
        "one core, and no affinity": task("WARNING", SLURM_CPUS_ON_NODE="8", **TASKS),
        "three CPUs, and no affinity": task("OK", "=each task may use 3 CPUs", SLURM_CPUS_ON_NODE="12", **TASKS),
        "without a GPU": task("OK", cpus=1, SLURM_CPUS_PER_TASK="1"),
        "outside Slurm": task("NOT_APPLICABLE", SLURM_JOB_ID=None, SLURM_CPUS_PER_TASK="1", SLURM_JOB_GPUS="0"),
        "the variable is the subject": says(
            "WARNING", subject="SLURM_CPUS_PER_TASK", environ={**JOB, "SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_GPUS": "0"}
        ),
    },
    {
        f"{granted} {more}": task(
            "WARNING", "", f"^#SBATCH --cpus-per-task={RecordedHost(EIGHT).counts[0] * eighths // 8}  # ",
            machine=EIGHT,
            SLURM_CPUS_PER_TASK="1", SLURM_JOB_GPUS=granted, **more,
        )
        for granted, more, eighths in [
            ("3", {}, 1), ("0-3", {}, 4), ("0,1,2,3,4,5,6,7", {}, 8), ("0-3", {"SLURM_STEP_TASKS_PER_NODE": "4"}, 1)
        ]
    },
)  # fmt: skip


def step(severity, cpus, message="", remedy="", **environ):
    environ = {**JOB, "SLURM_STEP_ID": "0", "SLURM_CPUS_PER_TASK": "16", **environ}
    subject = "SRUN_CPUS_PER_TASK" if severity == "WARNING" else None
    return says(severity, message, remedy, subject=subject, environ=environ, affinity=range(cpus))


test_slurm_srun_cpus = table(
    "slurm_srun_cpus",
    {
        f"{cpus} of 16": step(
            "WARNING",
            cpus,
            f"=the job requested 16 CPUs per task, but srun gave this one {cpus}",
            '=export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"  # in the batch script, before srun',
        )
        for cpus in (1, 2, 15)
    },
    {f"{cpus} CPUs": step("OK", cpus, f"=srun gave this task {cpus} CPUs") for cpus in (16, 64)},
    {
        "srun was told": step("OK", 4, SRUN_CPUS_PER_TASK="4"),
        "the job asked for none": step("OK", 1, SLURM_CPUS_PER_TASK=None),
        "outside Slurm": step("NOT_APPLICABLE", 1, SLURM_JOB_ID=None),
    },
    {
        f"no step of srun's: {name}": step("NOT_APPLICABLE", 1, SLURM_STEP_ID=name)
        for name in (None, "", "batch", "4294967290", "4294967291")
    },
)


def used(severity, message, others, stolen, remedy="", *, budget=16):
    cpu = {"cpu.affinity_count": 16, "cpu.budget": budget, "cpu.others": others, "cpu.stolen": stolen}
    return says(severity, message, remedy, facts=cpu)


test_machine_busy = table(
    "machine_busy",
    {
        "a trace": used("OK", "=others use 0.0 of 16 CPUs", 0.04, 0.0),
        "half": used("WARNING", "=others use 8.1 of 16 CPUs", 8.1, 0.0, "top"),
        "two are needed": used("OK", "=others use 8.1 of 16 CPUs", 8.1, 0.0, budget=2),
        "guests": used(
            "WARNING", "=others use 6.0 of 16 CPUs, other guests of the host 5.9 of them", 6.0, 5.9, "^move to a host"
        ),
        "hardly guests": used("WARNING", "=others use 6.0 of 16 CPUs", 6.0, 0.5, "top"),
        "not read": says(
            "UNKNOWN",
            "^how much of the CPUs others use could not be read (/proc/stat",
            machine="cpu-only",
            files={"/proc/stat": None},
        ),
    },
)

POD, BYTES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "68719476736"


def pod(severity, cpu, memory, message="", remedy="", *, environ=POD, cpus=16):
    files = {QUOTA: cpu, f"{CGROUP}/job/memory.max": memory}
    return says(severity, message, remedy, files=files, environ=environ, affinity=range(cpus))


def bus(count):
    entry = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"
    return {f"/sys/bus/pci/devices/0000:{number:02x}:00.0/uevent": entry for number in range(0x10, 0x10 + count)}


OF_POD = "in the container of the pod's manifest; "
test_kubernetes_limits = table(
    "kubernetes_limits",
    {
        missing: pod(
            "WARNING",
            cpu,
            memory,
            f"=the pod has {missing}, and the node has 16 CPUs",
            '=resources: {limits: {cpu: "14", memory: 112Gi, nvidia.com/gpu: 1}}  '
            f"# {OF_POD}this pod's part of the node: 1 GPU of 1",
        )
        for cpu, memory, missing in [
            ("max 100000", BYTES, "no CPU limit"),
            ("800000 100000", "max", "no memory limit"),
            (None, None, "no CPU and no memory limit"),
        ]
    },
    {
        "both": pod("OK", "800000 100000", BYTES, "=limits: 8 CPUs, 64.0 GiB"),
        "half a CPU": pod("OK", "250000 100000", BYTES, "=limits: 2.5 CPUs, 64.0 GiB"),
        "CPUs of its own": pod("OK", "max 100000", BYTES, "=limits: 15 CPUs, 64.0 GiB", cpus=15),
        "but no memory": pod("WARNING", "max 100000", "max", "^the pod has no memory limit,", cpus=15),
        "a container": pod("NOT_APPLICABLE", None, None, environ={}),
        "a Slurm job in a pod": pod("NOT_APPLICABLE", None, None, environ={**POD, "SLURM_JOB_ID": "7"}),
        "eight GPUs": says(
            "WARNING", "", f"nvidia.com/gpu: 8}}}}  # {OF_POD}this pod's part of the node: 8 GPUs of 8",
            machine=EIGHT, environ=POD,
        ),
        "one GPU of eight": says(
            "WARNING", "", 'cpu: "1", memory: 14Gi, nvidia.com/gpu: 1}}', files=bus(7), environ=POD
        ),
        "no GPU": says("WARNING", "", f"Gi}}}}  # {OF_POD}a share of the node", machine="cpu-only", environ=POD),
        "MIG slices have a name of their own": says("WARNING", "", "Gi}}  # ", gpu={"MigMode": [1, 1]}, environ=POD),
    },
    {
        f"not read: {cpu} {memory}": pod("UNKNOWN", cpu, memory, "garbage")
        for cpu, memory in [("garbage", BYTES), ("800000 100000", "garbage"), ("garbage", "max")]
    },
)  # fmt: skip

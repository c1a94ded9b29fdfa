"""Who may use a GPU and who does: its modes, other processes, other jobs, and the CPUs near it."""

from recorded import EIGHT, NOT_SUPPORTED, UNREAD, UNSUPPORTED, RecordedHost, load, says, table

AT = "00000000:00:06.0"
FIRST_ONLY = {"devices": RecordedHost(EIGHT).torch["devices"][:1]}
UNSEEN = ["OK GPU 0", *(f"NOT_APPLICABLE GPU {index}" for index in range(1, 8))]
"""What is found if torch sees one GPU of eight."""
DEFAULT = (
    f"=sudo nvidia-smi -i {AT} -c DEFAULT  # on the host, as root; changes the node; "
    "an exclusive mode may be deliberate, as for MPS"
)
MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
MPS = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
test_compute_mode = table(
    "compute_mode",
    {
        MODES[number]: says(severity, f"^its compute mode is {MODES[number]}", remedy, gpu={"ComputeMode": number})
        for number, severity, remedy in [
            (0, "OK", "="), (1, "WARNING", DEFAULT), (2, "ERROR", DEFAULT), (3, "WARNING", DEFAULT)
        ]
    },
    {
        f"{variable} {MODES[number]}": says(severity, told, gpu={"ComputeMode": number}, environ={variable: "50"})
        for variable in MPS
        for number, severity, told in [
            (0, "OK", "=its compute mode is default"), (1, "WARNING", "only one program"), (2, "ERROR", "no program"),
            (3, "OK", "as MPS requires"),
        ]
    },
    {"torch does not see it": says(UNSEEN, machine=EIGHT, gpu={"ComputeMode": 2}, gpu_index=5, torch=FIRST_ONLY)},
)  # fmt: skip

A40 = {"Name": "NVIDIA A40", "CudaComputeCapability": [8, 6]}
RTX_5090 = {"Name": "NVIDIA GeForce RTX 5090", "CudaComputeCapability": [12, 0], "Brand": 5}
RTX_PRO_4000 = {"Name": "NVIDIA RTX PRO 4000 Blackwell", "CudaComputeCapability": [12, 0], "Brand": 13}
GB10 = {"Name": "NVIDIA GB10", "CudaComputeCapability": [12, 1]}
TITAN = {"CudaComputeCapability": {"unreadable": "?"}, "Name": "NVIDIA TITAN V", "Brand": 6}


def mig(severity, modes, message="", remedy="", environ=None, **gpu):
    return says(severity, message, remedy, subject="GPU 0", gpu={"MigMode": modes, **gpu}, environ=environ)


test_mig_mode = table(
    "mig_mode",
    {
        "on": mig(
            "WARNING",
            [1, 1],
            "^MIG is on",
            (
                "^CUDA_VISIBLE_DEVICES=$(nvidia-smi -L | grep -A1 GPU-f5f3a5e9-939a-980a-1428-1d671bf50b09 "
                "| grep -om1 'MIG-[^)]*') gputune probe  # ",
                f"sudo nvidia-smi mig -i {AT} -dci; sudo nvidia-smi mig -i {AT} -dgi; sudo nvidia-smi -i {AT} -mig 0",
            ),
        ),
        "a slice of its own": mig("WARNING", [1, 1], "", "^gputune probe  # ", {"CUDA_VISIBLE_DEVICES": "MIG-1"}),
    },
    {
        message: mig("WARNING", modes, f"={message}", f"; sudo nvidia-smi -i {AT} --gpu-reset; ")
        for message, modes in {
            "MIG is off, and will be on after a reset": [0, 1],
            "MIG is on, and will be off after a reset": [1, 0],
        }.items()
    },
    {
        message: mig("NOT_APPLICABLE", UNSUPPORTED, message, **gpu)
        for message, gpu in {
            "NVIDIA A40 (8.6) has no MIG": A40,
            "NVIDIA GeForce RTX 5090 (12.0) has no MIG": RTX_5090,
            "NVIDIA RTX PRO 4000 Blackwell (12.0) has no MIG": RTX_PRO_4000,
            "NVIDIA GB10 (12.1) has no MIG": GB10,
            "NVIDIA TITAN V is a consumer GPU": TITAN,
            "vGPU": {"VirtualizationMode": 2},
        }.items()
    },
    {
        f"does not tell: {capability}": mig("UNKNOWN", UNSUPPORTED, NOT_SUPPORTED, CudaComputeCapability=capability)
        for capability in ([8, 0], [9, 0], [10, 0], [10, 3], [11, 0], {"unreadable": "?"})
    },
    {
        f"not told: {model}": mig("UNKNOWN", UNSUPPORTED, NOT_SUPPORTED, **RTX_PRO_4000 | {"Name": model})
        for model in ("RTX PRO 4500 Blackwell", "RTX PRO 5000 Blackwell", "RTX PRO 6000 Blackwell")
    },
    {f"not read: {answer}": mig("UNKNOWN", answer, "NVML", **RTX_5090) for answer in (UNREAD, [2, 0], [0])},
)  # fmt: skip

COMPUTE, CLIENTS, OLD, NEW = (
    "ComputeRunningProcesses", "MPSComputeRunningProcesses", "MemoryInfo", "MemoryInfo:33554472",
)  # fmt: skip
GIB = 1 << 30
LOOK = ("^sudo fuser -v /dev/nvidia*  # on the host, as root; ", "CUDA_VISIBLE_DEVICES")


def of(*pids, each=None):
    return [{"pid": pid, "usedGpuMemory": each} for pid in pids]


def memory(used):
    return {"total": 150754820096, "used": used}


def busy(severity, message="", remedy="", **gpu):
    return says(severity, message, remedy, subject="GPU 0", gpu=gpu)


def desktop(severity, *pids, used=GIB, each=None, message="", **gpu):
    """A desktop's card and its graphics processes, which use so much memory each."""
    gpu = {"Brand": 5, "GraphicsRunningProcesses": of(*pids, each=each), NEW: memory(used), **gpu}
    return busy(severity, message, **gpu)


test_gpu_in_use = table(
    "gpu_in_use",
    {
        f"{told} {mps}": busy(
            "WARNING",
            f"={told} on it; 9.0 GiB of its memory is in use",
            LOOK,
            **{COMPUTE: of(*compute), CLIENTS: of(*mps), NEW: memory(9 * GIB)},
        )
        for compute, mps, told in [
            ((1,), (), "1 process"), ((), (1,), "1 process"), ((1,), (2,), "2 processes"), ((1, 2), (2,), "2 processes")
        ]
    },
    {
        "Xorg and a browser": desktop("OK", 7, 8, used=2 * GIB),
        "the browser computes": desktop("OK", 7, 8, used=2 * GIB, **{COMPUTE: of(8)}),
        "another computes": desktop("WARNING", 7, used=2 * GIB, **{COMPUTE: of(9)}),
        "more than a desktop's memory": desktop("WARNING", 7, used=4 * GIB + 1),
        "memory of known graphics processes": desktop("OK", 7, used=9 * GIB, each=8 * GIB),
        "the same in a data centre": desktop("OK", 7, used=9 * GIB, each=8 * GIB, Brand=14),
        "a data-centre card has no desktop": desktop("WARNING", 7, used=2 * GIB, Brand=14),
        "no process in sight": desktop("WARNING", used=2 * GIB),
        "in a container, which sees no process": desktop("OK", used=2 * GIB, DisplayActive=1),
        "without a display": desktop("WARNING", used=2 * GIB, DisplayActive=0),
        "nothing read": desktop("WARNING", used=2 * GIB, DisplayActive=UNREAD, GraphicsRunningProcesses=UNREAD),
        "they are said": desktop("OK", 7, 8, message="=no other process uses it but 2 graphics processes"),
        "whatever memory it has": busy("WARNING", **{COMPUTE: of(1)}),
        "memory is unread": busy("WARNING", "=1 process on it", **{COMPUTE: of(1), NEW: UNREAD, OLD: UNREAD}),
        "memory without a process": busy(
            "WARNING",
            "=9.0 GiB of its memory is in use, though no compute process is visible from here",
            LOOK,
            **{NEW: memory(9 * GIB)},
        ),
        "the reserve, by an older driver": busy("OK", **{NEW: UNREAD, OLD: memory(644939776)}),
        "torch does not see it": says(UNSEEN, machine=EIGHT, gpu={COMPUTE: of(1)}, gpu_index=5, torch=FIRST_ONLY),
    },
    {
        f"{used} bytes": busy(severity, **{NEW: memory(used)})
        for used, severity in [(0, "OK"), (GIB, "OK"), (GIB + 1, "WARNING")]
    },
    {
        f"not read: {' '.join(calls)}": busy("UNKNOWN", "NVML: Unknown Error", **dict.fromkeys(calls, UNREAD))
        for calls in [(COMPUTE,), (CLIENTS,), (NEW, OLD)]
    },
)  # fmt: skip

SHARD, BY_MPS = (
    ("^a Slurm shard", "^#SBATCH --gres=gpu:1"),
    ("through MPS", "^unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_ACT"),
)
test_gpu_shared = table(
    "gpu_shared",
    {
        f"{machine} {name}": says("WARNING", *told, machine=machine, environ={"SLURM_JOB_ID": "7", name: value})
        for machine in ("nvidia-h200-x1", EIGHT)
        for name, value, told in [
            ("SLURM_SHARDS_ON_NODE", "4", SHARD), ("SLURM_JOB_GRES", "gres:shard:2", SHARD), (MPS[1], "25", BY_MPS),
            (MPS[0], "/mps", BY_MPS),
        ]
    },
    {
        "nothing shares it": says("OK"),
        "a job's own": says("OK", environ={"SLURM_JOB_ID": "7", "SLURM_JOB_GRES": "gres:gpu:1", "SLURM_JOB_GPUS": "0"}),
        "no GPU": says("NOT_APPLICABLE", machine="cpu-only", environ={"SLURM_SHARDS_ON_NODE": "4"}),
        "a GPU that nothing describes": says("UNKNOWN", machine="cpu-only", files={"/dev/nvidia0": ""}),
    },
)  # fmt: skip


def near(severity, words, message="", remedy="", **overrides):
    return says(severity, message, remedy, subject="GPU 0", gpu={"CpuAffinity:64": words}, **overrides)


FAR = [0xFFFF_0000, 0]
test_numa = table(
    "numa",
    {
        cpus: near(
            "WARNING",
            words,
            f"=the CPUs near it are {cpus}, but this process may run only on 0-15",
            f"^docker run --cpuset-cpus={cpus} IMAGE  # ",
        )
        for cpus, words in {"16-31": FAR, "64-65,67": [0, 0b1011]}.items()
    },
    {cpus: near("OK", [word], f"({cpus})") for cpus, word in {"0-15": 0xFFFF, "15-31": 0xFFFF_8000, "0": 1}.items()},
    {
        "on a host": near("WARNING", FAR, "", "^taskset -cp 16-31 $$  # ", files={"/.dockerenv": None}),
        "in Slurm": near(
            "WARNING", FAR, "", "^#SBATCH --gres-flags=enforce-binding  # ", environ={"SLURM_JOB_ID": "7"}
        ),
        "in a pod": near(
            "WARNING",
            FAR,
            "",
            "^ask for the Topology Manager's policy",
            environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        ),
        "torch does not see it": says(
            UNSEEN, machine=EIGHT, gpu={"CpuAffinity:64": [0, 0, 1]}, gpu_index=3, torch=FIRST_ONLY
        ),
        "torch sees none": near("WARNING", [0, 1], torch={"devices": []}),
        "no CPU is no answer": near("UNKNOWN", [0, 0], "NVML answered '[0, 0]'"),
    },
)


def alone(severity, message, *conditions, remedy="", **more):
    measured = [load(more.pop("device", "cuda:0"), **one) for one in conditions]
    return says(severity, message, remedy, measured=measured, **more)


EMPTY_CPU, ONE_GPU = "UNKNOWN CPU", {"gpu_processes": 1.0}
test_measured_alone = table(
    "measured_alone",
    {
        "only a probe tells": says(
            [f"NOT_APPLICABLE GPU {index}" for index in range(8)], "gputune probe", machine=EIGHT
        ),
        "another process": alone(
            ["WARNING GPU 0", EMPTY_CPU], "=1 other process on it during the measurements", ONE_GPU,
            {"gpu_processes": 2.0}, {}, remedy="probe again",
        ),
        "three others": alone(
            ["WARNING GPU 0", EMPTY_CPU], "=3 other processes on it during the measurements", ONE_GPU,
            {"gpu_processes": 4.0}, {}, remedy="probe again",
        ),
        "how much it used": alone(
            ["WARNING GPU 0", EMPTY_CPU],
            "=1 other process on it during the measurements, which used up to 45 % of its SMs",
            {"gpu_processes": 2.0, "other_sm_percent": 3.0}, {"gpu_processes": 2.0, "other_sm_percent": 45.0},
        ),
        "alone": alone(
            ["OK GPU 0", EMPTY_CPU], "=no other process was seen on it", ONE_GPU | {"other_sm_percent": 0.0}, {}
        ),
        "processes were not read": alone(["UNKNOWN GPU 0", EMPTY_CPU], "", {"power_watts": 300.0}),
        "only the measured GPU": alone(
            [*(f"{'WARNING' if index == 3 else 'NOT_APPLICABLE'} GPU {index}" for index in range(8)), EMPTY_CPU],
            "", {"gpu_processes": 2.0}, device="cuda:3", machine=EIGHT,
        ),
        "without a GPU": says(
            ["NOT_APPLICABLE", "WARNING CPU"], machine="cpu-only", measured=[load("cpu", other_cpus=1.5)]
        ),
    },
    {
        f"{others} of {affinity} CPUs, {budget} needed": says(
            ["NOT_APPLICABLE GPU 0", f"{severity} CPU"],
            f"^other processes used up to {max(others):.1f} of {affinity} CPUs",
            measured=[load("cpu", other_cpus=other) for other in others],
            facts={"cpu.affinity_count": affinity, "cpu.budget": budget},
        )
        for severity, others, affinity, budget in [
            ("OK", [0.0], 16, 16), ("OK", [0.3], 16, 16), ("WARNING", [0.4], 16, 16), ("WARNING", [12.0], 16, 16),
            ("OK", [12.0], 16, 4), ("WARNING", [13.1], 16, 4), ("WARNING", [0.1, 9.0, 0.0], 16, 16),
        ]
    },
)  # fmt: skip

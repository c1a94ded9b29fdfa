"""Memory, /dev/shm, folders, limits and the user of this process; and who can lift a limit."""

from making import row
from recorded import says, table

from gputune.facts import Gap, Memory, Process
from gputune.measurement import Measurement

GIB = 1 << 30
ADAPTER = {"/dev/infiniband/uverbs0": ""}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def lock(severity, limit, message="", remedy="", *, adapter=ADAPTER, capabilities=0, environ=None):
    limits = f"Max locked memory         {limit}             unlimited            bytes     \n"
    files = {"/proc/self/limits": limits, "/proc/self/status": f"CapEff:\t{capabilities:016x}\n", **adapter}
    return says(severity, message, remedy, files=files, environ=environ)


test_memlock_limit = table(
    "memlock_limit",
    {
        told: lock("WARNING", limit, f"^only {told} may be locked", "^docker run --ulimit memlock=-1 IMAGE  # ")
        for limit, told in [(65536, "64 KiB"), (8 << 20, "8 MiB"), (GIB - 1, "1024 MiB")]
    },
    {
        "in a pod": lock("WARNING", 1, "", "^securityContext: {capabilities: {add: [IPC_LOCK]}}  # ", environ=POD),
        "in Slurm": lock(
            "WARNING", 1, "",
            "^sudo mkdir -p /etc/systemd/system/slurmd.service.d && printf '[Service]\\nLimitMEMLOCK=",
            environ={"SLURM_JOB_ID": "7"},
        ),
        "in Apptainer": lock(
            "WARNING", 1, "", '^echo "$(id -un) - memlock unlimited" | sudo tee ',
            environ={"APPTAINER_CONTAINER": "x.sif"},
        ),
        "enough": lock("OK", GIB, "=1.0 GiB may be locked"),
        "unlimited": lock("OK", "unlimited", "=any amount of memory may be locked"),
        "with the capability": lock("OK", 1, capabilities=1 << 14),
        "with all others": lock("WARNING", 1, capabilities=~(1 << 14) % (1 << 41)),
        "no adapter": lock("NOT_APPLICABLE", 1, adapter={}),
        "another device": lock("NOT_APPLICABLE", 1, adapter={"/dev/infiniband/rdma_cm": ""}),
    },
    {
        f"not read: {limits}": says(
            "UNKNOWN", reason, files={"/proc/self/limits": limits, "/proc/self/status": None, **ADAPTER}
        )
        for limits, reason in [(None, "No such file"), ("Max open files 1 1 files\n", "locked memory")]
    },
)  # fmt: skip


def open_files(severity, limit, cpus, message, remedy=""):
    limits = f"Max open files            {limit}             1048576            files     \n"
    return says(severity, message, remedy, files={"/proc/self/limits": limits}, affinity=range(cpus))


test_open_files_limit = table(
    "open_files_limit",
    {
        f"{limit} for {cpus} CPUs": open_files(
            "WARNING", limit, cpus, (f"{limit} files may be open", f"on each of {cpus} CPUs may need {need}"),
            ('^ulimit -n "$(ulimit -Hn)"  # ', "docker run --ulimit nofile=65536:65536 IMAGE"),
        )
        for limit, cpus, need in [(355, 16, 356), (256, 16, 356), (1024, 58, 1028), (115, 1, 116)]
    },
    {
        f"{limit} for {cpus} CPUs": open_files("OK", limit, cpus, f"={told} files may be open")
        for limit, cpus, told in [
            (356, 16, "356"), (1024, 57, "1024"), (116, 1, "116"), ("unlimited", 64, "any number of")
        ]
    },
    {
        f"not read: {limits}": says("UNKNOWN", reason, files={"/proc/self/limits": limits})
        for limits, reason in [(None, "No such file"), ("Max cpu time 1 1 seconds\n", "open files")]
    },
)  # fmt: skip


def nameless(severity, message, remedy="", torch="2.12.1+cu130", **environ):
    return says(severity, message, remedy, user=(1234, None, None), torch={"torch": torch}, environ=environ)


NO_NAME = "^user id 1234 has no name"
test_unknown_uid = table(
    "unknown_uid",
    {
        f"torch {torch}": nameless(
            "WARNING", NO_NAME, ("^export USER=uid1234  # ", "docker run --env USER=user IMAGE"), torch
        )
        for torch in ("2.12.1+cu130", "2.4.0", "main", None)
    },
    {
        f"torch {torch}": nameless("OK", f"which torch {torch} does not need", torch=torch)
        for torch in ("2.13.0+cu130", "2.13.0a0+git1", "2.14.0", "3.0.0")
    },
    {
        f"{name} stands in": nameless("OK", NO_NAME, **{name: "me"})
        for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "TORCHINDUCTOR_CACHE_DIR")
    },
    {
        "an empty variable stands in for nothing": nameless("WARNING", NO_NAME, USER=""),
        "a name": says("OK", "=user root (0)"),
        "not read": says(
            "UNKNOWN",
            "ImportError: pwd",
            facts={"process": Process(), "gaps": (Gap(fact="process.user", reason="ImportError: pwd"),)},
        ),
    },
)

THERE = {"/root/.profile": "", "/tmp/x": "", "/data/hub/x": ""}
HOMELESS = {"HOME": None}


def folders(severity, message="", remedy="", closed=(), **environ):
    return says(severity, message, remedy, files=THERE, closed=closed, environ=environ)


ALL = "TORCH_HOME, HF_HOME, TMPDIR can be written to"
TO_TMP, TO_HOME = "mkdir -p /tmp/cache && export XDG_CACHE_HOME=/tmp/cache", "/root/.cache/tmp"
MOUNT = "^docker run --tmpfs /tmp IMAGE  # "
ELSEWHERE = {"XDG_CACHE_HOME": "/tmp/cache"}
test_cache_folders = table(
    "cache_folders",
    {
        "all": folders("OK", f"=HOME, XDG_CACHE_HOME, {ALL}"),
        "a closed home": folders(
            "WARNING",
            "=cannot be written to: HOME (/root), XDG_CACHE_HOME (/root/.cache), TORCH_HOME (/root/.cache/torch), "
            "HF_HOME (/root/.cache/huggingface)",
            f"{TO_TMP}  # ", ["/root"],
        ),
        "a closed home, caches moved": folders("OK", f"=XDG_CACHE_HOME, {ALL}", "", ["/root"], **ELSEWHERE),
        "no home, caches moved": says(
            "OK", f"=XDG_CACHE_HOME, {ALL}", files=THERE, user=(1234, None, None), environ=HOMELESS | ELSEWHERE
        ),
        "one folder": folders(
            "WARNING", "=cannot be written to: TORCH_HOME (/data/hub)",
            "^mkdir -p /tmp/cache/torch && export TORCH_HOME=/tmp/cache/torch  # ", ["/data/hub"],
            TORCH_HOME="/data/hub",
        ),
        "a read-only root": folders("WARNING", ("HOME (/root), ", "TMPDIR (/tmp)"), MOUNT, ["/"]),
        "the root for a home": folders(
            "WARNING", "HOME (/), XDG_CACHE_HOME (/.cache), TORCH_HOME (/.cache/torch)", MOUNT, ["/"], HOME="/"
        ),
        "no such TMPDIR": folders(
            "WARNING", "=cannot be written to: TMPDIR (/data/hub/none)",
            f"^mkdir -p {TO_HOME} && export TMPDIR={TO_HOME}  # ", TMPDIR="/data/hub/none",
        ),
        "a closed /tmp": folders("WARNING", "=cannot be written to: TMPDIR (/tmp)", "", ["/tmp"]),
        "a closed /tmp that is not used": folders("OK", "", "", ["/tmp"], TMPDIR="/data/hub"),
        "to be made": folders("OK", HF_HOME="/data/hub/hf/deeper"),
        "not to be made": folders("WARNING", "", "", ["/data/hub"], HF_HOME="/data/hub/hf/deeper"),
        "no home": says(
            "WARNING", "=cannot be written to: HOME (not set)", f"{TO_TMP}  # ",
            environ=HOMELESS, user=(1234, None, None),
        ),
        "no HOME, and a home": folders("OK", HOME=None),
        "without a GPU": says("WARNING", machine="cpu-only", files=THERE, closed=["/root"]),
        "no room": says("WARNING", "^less than 64 MiB is left in: HOME (/root)", space=0),
        "little room": says("WARNING", "^less than 64 MiB is left in: HOME (/root)", space=(64 << 20) - 1),
        "room": says("OK", space=64 << 20),
        "on a host": says("WARNING", "", f"={TO_TMP}", files={"/.dockerenv": None}, closed=["/root"]),
        "a read-only host": says("WARNING", "", "^df -h  # ", files={"/.dockerenv": None}, closed=["/"]),
        "a full pod mounts one, and HOME is never moved": says(
            "WARNING", "",
            "=spec: {volumes: [{name: tmp, emptyDir: {}}], containers: [{name: NAME, volumeMounts: "
            "[{name: tmp, mountPath: /tmp}]}]}  # in the pod's manifest; then move the caches there too",
            space=0, environ=POD,
        ),
        "the variable is the subject": says("WARNING", subject="HOME", files=THERE, closed=["/root"]),
        "or the folder's own": says(
            "WARNING", subject="TORCH_HOME", files=THERE, closed=["/data/hub"], environ={"TORCH_HOME": "/data/hub"}
        ),
        "not read": says(
            "UNKNOWN", "ValueError: odd",
            facts={"process": Process(), "gaps": (Gap(fact="process.folders", reason="ValueError: odd"),)},
        ),
    },
)  # fmt: skip

GROUP = "/sys/fs/cgroup/job"


def of_group(severity, used, message="", remedy="", *, cache=0, limit=100 * GIB, meminfo=...):
    stat = None if cache is None else f"anon 7\ninactive_file {cache}\nactive_file {cache // 2}\n"
    group = {f"{GROUP}/memory.max": limit, f"{GROUP}/memory.current": used, f"{GROUP}/memory.stat": stat}
    files = {path: None if text is None else str(text) for path, text in group.items()}
    files |= {} if meminfo is ... else {"/proc/meminfo": meminfo}
    return says(severity, message, remedy, files=files)


def of_host(severity, meminfo, message="", remedy=""):
    return says(severity, message, remedy, machine="cpu-only", files={"/proc/meminfo": meminfo})


LITTLE = f"MemTotal: {125 << 20} kB\nMemAvailable: {1 << 20} kB\n"
NOT_TOLD = f"MemTotal: {125 << 20} kB\n"
test_memory_left = table(
    "memory_left",
    {
        f"{left} left": of_group(
            "WARNING", used, f"={left} is left of this group's limit of 100.0 GiB",
            ("^docker run --memory=126g IMAGE  # ", "fewer DataLoader workers"),
        )
        for used, left in [(90 * GIB + 1, "10.0 GiB"), (99 * GIB + GIB // 2, "512 MiB"), (101 * GIB, "0 KiB")]
    },
    {
        "all left": of_group("OK", 0),
        "a tenth left": of_group("OK", 90 * GIB),
        "the file cache gives way": of_group(
            "OK", 99 * GIB, "=61.0 GiB is left of this group's limit of 100.0 GiB", cache=40 * GIB
        ),
        "the host has little": of_group(
            "WARNING", 0, "=1.0 GiB is left of the host's memory of 125.0 GiB", "ps aux", meminfo=LITTLE
        ),
        "the host's warning before an odd limit": of_group("WARNING", 0, limit="garbage", meminfo=LITTLE),
        "an odd limit": of_group("UNKNOWN", 1, "garbage", limit="garbage"),
        "an unread group": of_group("UNKNOWN", None, "memory.current"),
        "an unread cache": of_group("UNKNOWN", 1, "memory.stat", cache=None),
        "a part of an unknown whole": says("UNKNOWN", machine="cpu-only", facts={"memory.total_bytes": None}),
        "a limit tells only half": says("UNKNOWN", "the host's memory", facts={"memory.total_bytes": None}),
        "a limit that the host can keep": of_group("OK", 0, "of this group's limit of 125.9", limit=131981020 * 1024),
        "and one that it cannot": of_group("OK", 0, "of the host's memory of 125.9", limit=131981020 * 1024 + 1),
        "no limit": of_host(
            "WARNING", "MemTotal: 104857600 kB\nMemAvailable: 10485759 kB\n",
            "=10.0 GiB is left of the host's memory of 100.0 GiB", "^ps aux --sort=-rss",
        ),
        "a tenth of the host's": of_host("OK", "MemTotal: 104857600 kB\nMemAvailable: 10485760 kB\n"),
        "less than plenty": of_host("WARNING", f"MemTotal: {1 << 30} kB\nMemAvailable: {(16 << 20) - 1} kB\n"),
        "plenty": of_host("OK", f"MemTotal: {1 << 30} kB\nMemAvailable: {16 << 20} kB\n"),
        "nothing available": of_host("UNKNOWN", "MemTotal: 9 kB\n", "MemAvailable"),
        "no such file": of_host("UNKNOWN", None, "No such file"),
    },
    {
        f"the host is not read, {used} bytes used, {meminfo}": of_group(severity, used, meminfo=meminfo)
        for meminfo in (NOT_TOLD, None)
        for used, severity in [(0, "UNKNOWN"), (99 * GIB, "WARNING")]
    },
)  # fmt: skip

NEED = 16 * 2 * 64 * 3 * 224 * 224 * 4  # of 16 workers: 1176 MiB


def shm(severity, size, message="", remedy="", *, free=None, kind="docker", cpus=16, measured=()):
    memory = Memory(shm_bytes=size, shm_free_bytes=size if free is None else free)
    facts = {"memory": memory, "container.kind": kind}
    return says(
        severity, message, remedy, subject=None if severity == "OK" else "/dev/shm", affinity=range(cpus), facts=facts,
        measured=measured,
    )  # fmt: skip


def dataset(rates, sent=True, batch_bytes=64 * 3 * 224 * 224 * 4):
    """The rows of `gputune probe --dataset`: rates by number of workers, and the bytes of a batch."""
    params = {"kind": "dataset", "batch": 64} | ({} if sent else {"sent": False})
    size = Measurement(bench="dataset", metric="batch_bytes", unit="B", samples=(float(batch_bytes),), device="cpu")
    return [size, *(row("dataset", "throughput", rate, workers=count, **params) for count, rate in rates.items())]


FOUR, EIGHT_UNSENT = dataset({0: 100.0, 4: 400.0}), dataset({0: 100.0, 8: 800.0}, sent=False) + dataset({0: 100.0})
EXACT = 409 << 20  # (4 workers x 2 + 2) batches of 36.75 MiB, in nine tenths of it
BEST = "the best setting for the measured dataset, 4 workers x 2 batches of 36.8 MiB in flight, needs 409 MiB"
VOLUME = (
    "spec: {volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: %s}}], "
    "containers: [{name: NAME, volumeMounts: [{name: shm, mountPath: /dev/shm}]}]}  # "
)
TO_ASK = {
    "docker": ("docker run --shm-size=%s IMAGE  # ", "g", "m"),
    "podman": ("podman run --shm-size=%s IMAGE  # ", "g", "m"),
    "kubernetes": (VOLUME, "Gi", "Mi"),
    "apptainer": ("sudo mount -o remount,size=%s /dev/shm  # on the host, as root; ", "G", "M"),
    None: ("sudo mount -o remount,size=%s /dev/shm  # on the host, as root; ", "G", "M"),
}
"""By container, how to ask for a size, and its units of gibibytes and mebibytes."""
test_shm_size = table(
    "shm_size",
    {
        f"{size} bytes": shm("WARNING", size, (f"^/dev/shm holds {told}", "16 CPUs would need about 1.1 GiB"))
        for size, told in [
            (0, "0 KiB"), (64 << 10, "64 KiB"), (64 << 20, "64 MiB"), (1 << 30, "1.0 GiB"), (NEED - 1, "1.1 GiB")
        ]
    },
    {
        f"{size >> 20} MiB for {cpus} CPUs": shm(severity, size, cpus=cpus)
        for size, cpus, severity in [(64 << 20, 1, "WARNING"), (1 << 30, 8, "OK"), (1 << 32, 64, "WARNING")]
    },
    {
        f"{kind} with {cpus} CPUs": shm("WARNING", 1 << 20, "", remedy % f"{size}{gib}", cpus=cpus, kind=kind)
        for cpus, size in [(1, 1), (2, 1), (16, 4), (64, 16), (128, 32)]
        for kind, (remedy, gib, _) in TO_ASK.items()
    },
    {
        f"{kind} and a measured dataset": shm(
            "WARNING", 64 << 20, f"=/dev/shm holds 64 MiB, and {BEST}", remedy % f"409{mib}", kind=kind, measured=FOUR
        )
        for kind, (remedy, _, mib) in TO_ASK.items()
    },
    {
        "enough": shm("OK", NEED, "=/dev/shm holds 1.1 GiB"),
        "full": shm(
            "WARNING", 8 << 30,
            ("^/dev/shm holds 8.0 GiB, of which 1.1 GiB is free, and ", "need about 1.1 GiB"),
            "^ls -l /dev/shm", free=NEED - 1,
        ),
        "free enough": shm("OK", 8 << 30, free=NEED),
        "not read": says("UNKNOWN", "/dev/shm", shm=None),
        "too small for a dataset": shm("WARNING", EXACT - 1, measured=FOUR),
        "what was asked for is enough": shm("OK", EXACT, f"=/dev/shm holds 409 MiB; {BEST}", measured=FOUR),
        "a dataset counts for more than CPUs": shm("OK", EXACT, cpus=64, measured=FOUR),
        "without one the CPUs count": shm("WARNING", EXACT, cpus=64),
        "workers whose batches did not fit": shm(
            "WARNING", 64 << 20, "8 workers x 2 batches of 36.8 MiB in flight, needs 735 MiB", "--shm-size=735m",
            measured=EIGHT_UNSENT,
        ),
        "full for a dataset": shm(
            "WARNING", 8 << 30, "^/dev/shm holds 8.0 GiB, of which 409 MiB is free, and the best setting",
            "^ls -l /dev/shm ", free=EXACT - 1, measured=FOUR,
        ),
        "large batches have all their digits": shm(
            "WARNING", 64 << 20, "batches of 1234 MiB in flight, needs 13712 MiB",
            measured=dataset({0: 100.0, 4: 400.0}, batch_bytes=1234 << 20),
        ),
        "a dataset that needs no workers": shm(
            "WARNING", 64 << 20, "=/dev/shm holds 64 MiB, and DataLoader workers for 16 CPUs would need about 1.1 GiB",
            "--shm-size=4g", measured=dataset({0: 100.0, 4: 90.0}),
        ),
    },
)  # fmt: skip

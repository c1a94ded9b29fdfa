"""Programs that run above copies of the user's folders: as root, as a user of no rights, and in a container."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

import pytest
from making import environ, until

import gputune
from gputune.host import overlay
from gputune.live.orders import Done
from gputune.trials.command import RunningCommand
from gputune.trials.failure import RunFailed
from gputune.trials.start import Start
from gputune.trials.user_files import WRITTEN, why_no_copies, words_above_copies

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
HABITS = Path(__file__).parents[1] / "live" / "scratch" / "scripts" / "habits.py"
USER = 1234
OLD = ("last.pt", "prev.pt", "old_1.pt", "old_2.pt")


@pytest.fixture
def open_folder():
    """A folder that every user can read, on a disk."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


STARTS = """
import os, sys
from pathlib import Path
from gputune.trials.user_files import words_above_copies
words = words_above_copies(Path(sys.argv[1]), sys.argv[2:], os.environ, memory_bytes=1 << 29)
os.execv(words[0], words)
"""


class Above:
    """Runs commands above copies, in `work`. Every user can read the few modules that this takes."""

    def __init__(self, folder):
        self.work, self.private, self.house = folder / "work", folder / "private", folder / "house"
        self.python = sys.executable
        for one in (self.work, self.private):
            one.mkdir()
        for name in ("host/overlay", "host/mount_plan", "host/kept", "host/keeper", "trials/user_files"):
            file = self.house / "gputune" / f"{name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(gputune.__file__).parent / f"{name}.py", file)

    def run(self, *command, before=(), cwd=None, **options):
        words = [*before, self.python, "-c", STARTS, str(self.private), *map(str, command)]
        env = {**os.environ, "HOME": str(self.work), "PYTHONPATH": str(self.house), "TMPDIR": str(self.private)}
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env.pop("XDG_CACHE_HOME", None)
        where = cwd or self.work
        return subprocess.run(words, cwd=where, env=env, capture_output=True, text=True, check=False, **options)

    def give_to(self, user):
        for one in (self.work, self.private, *self.work.rglob("*")):
            os.lchown(one, user, user)


@pytest.fixture
def above(open_folder):
    return Above(open_folder)


def state(folder):
    """Of all below: type and mode, time, and what it holds."""
    return {
        str(one): (one.lstat().st_mode, one.lstat().st_mtime_ns, one.is_file() and one.read_bytes())
        for one in [folder, *folder.rglob("*")]
    }


@pytest.mark.parametrize("above_copies", [True, False], ids=["copies", "scratch folder"])
def test_every_habit_sees_what_a_plain_run_sees(tmp_path, above_copies):
    outputs = []
    for name in ("plain", "tuned"):
        for habit in _habits():
            ck = tmp_path / name / "work" / habit / "ck"
            ck.mkdir(parents=True)
            for old in OLD:
                (ck / old).write_text(f"of the last run: {old}")
                os.utime(ck / old, (10**9, 10**9))
            ck.with_name("linked").symlink_to("ck")
    private = tmp_path / "tuned" / "private"
    private.mkdir()
    before = state(tmp_path / "tuned" / "work")
    words = (sys.executable, str(HABITS))
    env = environ(HOME=str(tmp_path / "tuned"), TMPDIR=str(private), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(
        words, cwd=tmp_path / "plain" / "work", env=env, capture_output=True, text=True, check=True, timeout=120
    )
    outputs.append(done.stdout)
    with (private / "log").open("wb") as log, chdir(tmp_path / "tuned" / "work"):
        start = Start(
            command=words, environ=env, folder=private, log=log, until=time.monotonic() + 120, above_copies=above_copies
        )
        with RunningCommand(start, "time") as running, pytest.raises(RunFailed, match=r"exit code 0\)"):
            running.first(Done)
    outputs.append((private / "log").read_text())
    assert " raised " not in outputs[0]
    assert outputs[1].splitlines() == outputs[0].splitlines()
    assert state(tmp_path / "tuned" / "work") == before
    assert not (private / WRITTEN).exists(), (private / WRITTEN).read_text()
    assert {one.name for one in private.iterdir()} - {"log", "socket", "namespace", "order"} <= _inductor()


def _habits():
    known = {"__name__": "habits"}
    exec(HABITS.read_text(), known)
    return list(known["HABITS"])


def _inductor():
    return {f"torchinductor_{name}" for name in ("root", os.environ.get("USER", "root"))}


SHELL = "cp a b && mv a c && rm d && echo more >> e && mkdir f && mv g h && ln -s c i && cat b c e && ls -d *"


def test_other_programs_write_to_the_copies_too(above):
    for name in "ade":
        (above.work / name).write_text(f"{name}\n")
    (above.work / "g").mkdir()
    (above.work / "g" / "x").touch()
    before = state(above.work)
    done = above.run("sh", "-c", SHELL)
    assert done.stdout.split() == [*"aae", "more", *"bcefhi"]
    assert state(above.work) == before


@pytest.mark.parametrize("path", ["/opt/gputune-test", "/etc/gputune-test", "/gputune-test"])
def test_no_folder_of_the_disk_is_written_to(above, path):
    above.run("sh", "-c", f"touch {path}")
    assert not Path(path).exists()


def test_shared_memory_is_the_machines(above):
    path = Path(f"/dev/shm/gputune-test-{os.getpid()}")
    above.run("touch", path)
    assert path.exists()
    path.unlink()


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM)])
def test_exit_codes_and_signals_are_the_commands(above, command, code):
    assert above.run("sh", "-c", command).returncode == code


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started(above, command, code):
    done = above.run(command)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)


def test_a_pipe_whose_reader_has_gone_ends_the_command_as_ever(above):
    done = above.run("sh", "-c", "yes | head -1")
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_the_sockets_of_running_programs_can_be_connected_to(above):
    path = str(above.work / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        assert above.run(sys.executable, "-S", "-c", code, path).returncode == 0


def test_a_folder_below_a_link_is_a_copy(above):
    (above.work / "real").mkdir()
    (above.work / "link").symlink_to("real")
    done = above.run("sh", "-c", "cd link && touch a && ls . ../real")
    assert done.stdout.count("a\n") == 2
    assert not list((above.work / "real").iterdir())


def test_a_folder_that_cannot_be_written_to_stays_so_and_the_program_runs(above):
    above.give_to(USER)
    above.work.chmod(0o555)
    done = above.run("sh", "-c", "touch a; echo ran", before=_as_user(above))
    assert done.stdout == "ran\n"


def test_a_disk_that_is_mounted_below_home_is_a_copy(above):
    (above.work / "disk").mkdir()
    script = 'mount -t tmpfs none disk && touch disk/a && "$@"; ls disk'
    done = above.run("sh", "-c", "rm disk/a; touch disk/b; ls disk", before=["unshare", "-m", "sh", "-c", script, "sh"])
    assert done.stdout.split() == ["b", "a"]


@pytest.mark.parametrize("is_root", [True, False])
@pytest.mark.parametrize(("size", "left"), [(1, "5 more"), (overlay.COPIED_BYTES + 1, "")])
def test_a_file_that_is_mounted_by_itself_is_copied_or_read_only(above, is_root, size, left):
    home, runs = above.work / "home", above.work / "runs"
    for folder in (home, runs):
        folder.mkdir()
    for name in ("results.csv", "mounted"):
        (runs / name).write_bytes(b"5" * size)
    above.give_to(USER)
    script = 'mount --bind ../runs/mounted ../runs/results.csv && exec "$@"'
    as_user = [] if is_root else _as_user(above)
    before = ["unshare", "-m", "sh", "-c", script, "sh", *as_user, "env", f"HOME={home}"]
    command = "cd ../runs; printf ' more' >> results.csv; [ $(stat -c %s results.csv) -gt 99 ] || cat results.csv"
    done = above.run("sh", "-c", command, before=before, cwd=home)
    assert done.stdout == left, done.stderr
    assert [(runs / name).stat().st_size for name in ("results.csv", "mounted")] == [size, size]


def test_what_is_mounted_below_a_closed_folder_changes_nothing(above):
    home, closed = above.work / "home", above.work / "closed"
    home.mkdir()
    (closed / "disk").mkdir(parents=True)
    above.give_to(USER)
    os.chown(closed, 0, 0)
    script = 'mount -t tmpfs none ../closed/disk && chmod 0 ../closed && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", script, "sh", *_as_user(above), "env", f"HOME={home}"]
    done = above.run("echo", "ran", before=before, cwd=home)
    assert done.stdout == "ran\n", done.stderr


def test_root_needs_no_home(above):
    assert above.run("echo", "ran", before=["env", "HOME=/"]).stdout == "ran\n"


class TestOfAUserWithoutRights:
    def test_a_folder_of_another_group_is_copied_where_it_is_named(self, above):
        above.give_to(USER)
        team = above.work / "team"
        team.mkdir()
        os.chown(team, USER, 4321)
        team.chmod(0o2775)
        done = above.run("sh", "-c", "touch $0/a && ls $0", team, before=_as_user(above))
        assert done.stdout == "a\n", done.stderr
        assert not list(team.iterdir())

    def test_a_working_directory_of_another_group_is_said_to_have_no_copy(self, above):
        above.give_to(USER)
        os.chown(above.work, USER, 4321)
        done = above.run("true", before=_as_user(above))
        line = f"{above.work} is of another group than your own\n"
        assert (done.returncode, done.stderr) == (overlay.FAILED, line)

    def test_the_kernel_permits_it_to_every_user(self, above):
        for name in "ade":
            (above.work / name).write_text(f"{name}\n")
        above.give_to(USER)
        before = state(above.work)
        done = above.run(
            "sh", "-c", "cp a b && mv a c && rm d && echo more >> e && cat b c e && id -u", before=_as_user(above)
        )
        assert done.stdout.split() == [*"aae", "more", str(USER)], done.stderr
        assert state(above.work) == before

    def test_a_folder_that_a_team_shares(self, above):
        above.give_to(USER)
        shared = above.work / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        done = above.run("sh", "-c", "touch a && ls", before=_as_user(above), cwd=shared)
        assert done.stdout == "a\n", done.stderr
        assert not list(shared.iterdir())

    def test_where_nothing_is_permitted_the_reason_is_a_line(self, above):
        forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
        done = above.run("true", before=["unshare", "-Ur", "sh", "-c", forbid, "sh"])
        assert (done.returncode, done.stderr) == (overlay.FAILED, "it permits no namespace to this user\n")

    def test_a_home_with_something_mounted_below_cannot_be_copied(self, above):
        (above.work / "disk").mkdir()
        above.give_to(USER)
        script = 'mount -t tmpfs none disk && exec "$@"'
        done = above.run("true", before=["unshare", "-m", "sh", "-c", script, "sh", *_as_user(above)])
        assert (done.returncode, done.stderr) == (overlay.FAILED, f"there can be no copy of {above.work}\n")


def _as_user(above):
    """The words that give a command no rights; its Python must be one that every user can start."""
    above.python = next(
        (one for one in (sys.executable, "/usr/bin/python3") if not os.path.realpath(one).startswith("/root/")), None
    )
    if above.python is None or not Path(above.python).exists():
        pytest.skip("no Python that every user can start")
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]


def test_a_root_folder_that_is_an_overlay_itself_as_in_a_container(above):
    (above.work / "a").write_text("a\n")
    tops = above.work.parent / "container"
    tops.mkdir()
    script = (
        'mount -t tmpfs none "$C" && mkdir "$C/upper" "$C/work" "$C/root" && '
        'mount -t overlay none -o "lowerdir=/,upperdir=$C/upper,workdir=$C/work" "$C/root" && '
        'for name in dev proc sys; do mount --rbind /$name "$C/root/$name"; done && '
        'mkdir "$C/root$W/volume" "$C/volume" && mount --bind "$C/volume" "$C/root$W/volume" && '
        'mount --bind /etc/hostname "$C/root/etc/hosts" && '
        'exec chroot "$C/root" sh -c \'cd "$W" && "$@"; ls . volume\' sh "$@"'
    )
    within = ["env", f"C={tops}", f"W={above.work}", "unshare", "-m", "sh", "-c", script, "sh"]
    done = above.run("sh", "-c", "rm a; touch b volume/c; cat /etc/hosts; ls . volume", before=within)
    name = Path("/etc/hostname").read_text().split()
    assert done.stdout.split() == [*name, ".:", "b", "volume", "volume:", "c", ".:", "a", "volume", "volume:"], (
        done.stderr
    )


def test_nothing_is_left_where_gputune_is_killed(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from gputune.host.kept import temporary_folder;"
        "from gputune.trials.command import RunningCommand; from gputune.trials.start import Start\n"
        "with temporary_folder() as folder:\n"
        '    program = \'import os, time; os.makedirs("x"); open("x/a", "w"); open("said", "w"); time.sleep(60)\'\n'
        "    command = (sys.executable, '-c', program)\n"
        "    log, environ = open('/dev/null', 'wb'), dict(__import__('os').environ)\n"
        "    start = Start(command=command, environ=environ, folder=folder, log=log, above_copies=True)\n"
        "    with RunningCommand(start, 'time'):\n"
        "        while not list(folder.glob('copies/disk/*/upper/**/said')): time.sleep(0.01)\n"
        "        print(folder, flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environ(), stdout=subprocess.PIPE, text=True
    )
    folder = Path(child.stdout.readline().strip())
    assert folder.name.startswith("gputune-")
    child.kill()
    child.wait()
    until(lambda: not folder.exists(), 10)
    assert not list(tmp_path.iterdir())


def test_a_start_takes_less_than_a_tenth_of_a_second_of_cpu_time(tmp_path):
    def seconds():
        words = words_above_copies(tmp_path, ["true"], environ(), memory_bytes=1 << 29)
        before = os.times()
        subprocess.run(words, check=True)
        after = os.times()
        shutil.rmtree(tmp_path / "copies")
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(5)) < 0.1


def test_the_trial_leaves_nothing(tmp_path):
    assert why_no_copies(tmp_path, ["python", "train.py"], environ()) == ""
    assert {one.name for one in tmp_path.iterdir()} == {"namespace", "order"}

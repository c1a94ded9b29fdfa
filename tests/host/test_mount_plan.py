"""Which folders are covered so that a program writes to none, from what /proc/self/mountinfo says of a machine."""

from dataclasses import dataclass, field

from gputune.host.mount_plan import Disk, mounts, plan
from gputune.host.overlay import Step

HOME = "/home/u"
OWN = ("/bin", "/etc", "/home", "/opt", "/tmp", "/usr", "/var")


@dataclass
class Machine(Disk):
    """Folders by their parents, in which all is a folder but `files`."""

    tops: tuple[str, ...] = OWN
    below: dict[str, list[str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    writable: tuple[str, ...] = ("/home/u", "/tmp")
    of_others: tuple[str, ...] = ()

    def folders(self, path: str) -> list[str]:
        return list(self.tops) if path == "/" else self.below.get(path, [])

    def is_folder(self, path: str) -> bool:
        return path not in self.files

    def is_file(self, path: str) -> bool:
        return path in self.files

    def is_open(self, path: str) -> bool:
        return path not in self.closed

    def is_writable(self, path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") for one in self.writable)

    def is_own(self, path: str) -> bool:
        return path not in self.of_others


def machine(*lines: str) -> str:
    """A text of mountinfo, from lines of number, parent, point, type and whether it is read-only."""
    rows = []
    for line in ("1 0 / ext4", "2 1 /proc proc", "3 1 /dev devtmpfs", "4 3 /dev/shm tmpfs", "5 1 /run tmpfs", *lines):
        number, parent, point, kind, *mode = line.split()
        rows.append(f"{number} {parent} 8:1 / {point} {mode[0] if mode else 'rw'},relatime shared:1 - {kind} none rw")
    return "\n".join(rows)


def planned(text: str, disk: Disk, unchanged: tuple[str, ...] = (), **options: object) -> list[Step]:
    return plan(mounts(text), disk, unchanged, **{"is_root": True, **options})  # type: ignore[arg-type]


def of(kind: str, steps: list[Step]) -> list[str]:
    return [step.point for step in steps if step.kind == kind]


ROOT = Machine(writable=("",))


class TestOfRoot:
    def test_every_folder_of_a_plain_disk_is_covered_and_the_kernels_are_not(self) -> None:
        steps = planned(machine(), Machine(tops=(*OWN, "/dev", "/proc", "/run"), writable=("",)))
        assert of("overlay", steps) == list(OWN)
        assert of("bind", steps) == []

    def test_the_root_folder_itself_is_read_only_last_of_all(self) -> None:
        assert planned(machine(), Machine(writable=("/",)))[-1] == Step("read-only", "/")

    def test_a_disk_and_a_home_on_a_network_get_overlays_of_their_own_above_those_around_them(self) -> None:
        steps = planned(machine("6 1 /home nfs4", "7 6 /home/u/data xfs"), ROOT)
        assert of("overlay", steps).index("/home") < of("overlay", steps).index("/home/u/data")
        assert of("overlay", steps).count("/home") == 1

    def test_a_container_with_files_that_are_mounted(self) -> None:
        text = machine("6 1 /etc/hosts ext4", "7 1 /workspace ext4", "8 1 /usr/lib/libcuda.so ext4 ro").replace(
            "/ ext4", "/ overlay"
        )
        steps = planned(text, Machine(files=("/etc/hosts", "/usr/lib/libcuda.so"), writable=("",)))
        assert of("overlay", steps) == [*OWN, "/workspace"]
        assert of("bind", steps) == ["/usr/lib/libcuda.so"]
        assert of("copy", steps) == ["/etc/hosts"]

    def test_a_temporary_folder_in_memory_is_covered(self) -> None:
        assert of("overlay", planned(machine("6 1 /tmp tmpfs"), ROOT)).count("/tmp") == 1

    def test_what_is_read_only_and_what_is_the_kernels_is_mounted_again_below_an_overlay(self) -> None:
        steps = planned(machine("6 1 /opt/image squashfs ro", "7 1 /var/lib/nfs rpc_pipefs"), ROOT)
        assert of("bind", steps) == ["/opt/image", "/var/lib/nfs"]

    def test_a_disk_below_run_is_covered_and_the_memory_of_services_is_not(self) -> None:
        steps = planned(machine("6 5 /run/user/1000 tmpfs", "7 5 /run/media/u/disk vfat"), ROOT)
        assert of("overlay", steps) == [*OWN, "/run/media/u/disk"]

    def test_run_is_covered_where_it_is_a_folder_of_the_disk(self) -> None:
        text = "\n".join(line for line in machine().splitlines() if " /run " not in line)
        assert "/run" in of("overlay", planned(text, Machine(tops=(*OWN, "/run"), writable=("",))))

    def test_nothing_is_covered_within_a_folder_that_stays(self) -> None:
        steps = planned(machine("6 1 /home/u/.cache ext4", "7 6 /home/u/.cache/x tmpfs"), ROOT, ("/home/u/.cache",))
        assert of("overlay", steps) == list(OWN)

    def test_a_read_only_root_is_left(self) -> None:
        text = machine("6 1 /work ext4").replace("/ rw", "/ ro")
        assert planned(text, ROOT) == [Step("overlay", "/work")]


class TestOfAUser:
    def test_a_folder_that_cannot_be_reached_is_left(self) -> None:
        steps = planned(machine(), Machine(closed=("/opt",)), is_root=False)
        assert of("overlay", steps) == [one for one in OWN if one != "/opt"]

    def test_a_file_that_is_mounted_by_itself_is_copied_where_the_user_can_write_to_it(self) -> None:
        text = machine("6 1 /home/u/results.csv ext4", "7 1 /etc/hosts ext4")
        steps = planned(text, Machine(files=("/home/u/results.csv", "/etc/hosts")), is_root=False)
        assert of("copy", steps) == ["/home/u/results.csv"]

    def test_a_folder_with_mounts_below_is_covered_folder_by_folder(self) -> None:
        disk = Machine(below={"/home": ["/home/u", "/home/v", "/home/nfs"]})
        steps = planned(machine("6 1 /home/nfs nfs4"), disk, is_root=False)
        assert "/home" not in of("overlay", steps)
        assert {"/home/u", "/home/v", "/home/nfs"} <= set(of("overlay", steps))
        assert not of("bind", steps)

    def test_what_lies_directly_in_such_a_folder_is_read_only_before_its_folders_are_covered(self) -> None:
        disk = Machine(below={"/home": ["/home/u"], "/home/u": ["/home/u/data", "/home/u/run"]})
        steps = planned(machine("6 1 /home/u/data fuse.gcsfuse"), disk, is_root=False)
        assert of("read-only", steps) == ["/home/u"]
        assert steps.index(Step("read-only", "/home/u")) < steps.index(Step("overlay", "/home/u/run"))

    def test_a_folder_of_another_owner_in_which_the_program_runs_has_an_overlay_of_its_own(self) -> None:
        disk = Machine(writable=("/home/u", "/opt/team/run"), of_others=("/opt/team/run",))
        steps = planned(machine(), disk, is_root=False, used=["/opt/team/run/a"])
        assert steps.index(Step("overlay", "/opt")) < steps.index(Step("overlay", "/opt/team/run"))
        assert Step("overlay", "/opt/team") not in steps

    def test_the_root_folder_needs_nothing_where_it_cannot_be_written_to(self) -> None:
        assert Step("read-only", "/") not in planned(machine(), Machine(), is_root=False)


class TestMounts:
    def test_a_mount_that_another_hides_is_none(self) -> None:
        seen = mounts(machine("6 1 /data/old ext4", "7 1 /data ext4", "8 4 /dev/shm tmpfs"))
        assert [one.number for one in seen if one.point in {"/data", "/data/old", "/dev/shm"}] == [7, 8]

    def test_a_mount_below_one_that_is_hidden_is_none(self) -> None:
        seen = mounts(machine("6 1 /data ext4", "7 6 /data/a ext4", "8 6 /data ext4"))
        assert [one.number for one in seen if one.point.startswith("/data")] == [8]

    def test_names_with_blanks_are_read(self) -> None:
        (one,) = mounts(r"6 1 0:5 / /mnt/my\040disk\134x rw - fuseblk /dev/sdb1 rw,user_id=0")
        assert one.point == "/mnt/my disk\\x"

    def test_a_file_system_that_is_read_only_is_so_through_each_mount(self) -> None:
        assert not mounts("6 1 0:5 / /mnt rw - iso9660 /dev/sr0 ro")[0].is_writable

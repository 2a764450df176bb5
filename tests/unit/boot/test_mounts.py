"""Storage of a node: what is mounted where, from which address, and what becomes of failures."""

from __future__ import annotations

import pytest

from slurm_hooks.boot import keys
from tests.unit.boot.vms import DATA, HOME, SCRATCH, Vm


def mounts(vm: Vm) -> list[str]:
    return [call for call in vm.calls if call.startswith("mount ")]


NFS = "hard,timeo=600,retrans=3,rsize=524288,wsize=524288"


def test_every_instance_has_its_place(vm: Vm) -> None:
    for key, value in ((keys.HOME, HOME), (keys.FILESTORES, DATA), (keys.LUSTRES, SCRATCH)):
        vm.tell(key, value)
    assert vm.boot()
    assert mounts(vm) == [
        f"mount -t nfs -o {NFS} 10.0.0.2:/home /home",
        f"mount -t nfs -o {NFS} 10.0.0.3:/vol1 /mnt/filestore/data",
        "mount -t lustre 10.0.0.4@tcp:/scratch /mnt/lustre/scratch",
    ]
    assert (vm.root / "mnt/lustre/scratch").is_dir()


def test_options_of_the_metadata_take_the_place_of_ours(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.tell(keys.LUSTRES, SCRATCH)
    vm.tell(keys.NFS_OPTIONS, "vers=3,nolock")
    vm.tell(keys.LUSTRE_OPTIONS, "flock")
    assert vm.boot()
    assert mounts(vm) == [
        "mount -t nfs -o vers=3,nolock 10.0.0.2:/home /home",
        "mount -t lustre -o flock 10.0.0.4@tcp:/scratch /mnt/lustre/scratch",
    ]


def test_address_in_the_metadata_is_not_asked_for(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.tell(keys.MOUNT_SOURCES, f"{DATA}=10.9.9.8:/x,{HOME}=10.9.9.9:/h")
    assert vm.boot()
    assert mounts(vm) == [f"mount -t nfs -o {NFS} 10.9.9.9:/h /home"]
    assert not any(HOME in path for path, _ in vm.servers.asked)


def test_local_file_system_does_not_pass_for_the_shared_one(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.file("proc/self/mounts", f"/dev/sdb1 {vm.root}/home ext4 rw 0 0\n")
    assert vm.boot()
    assert len(mounts(vm)) == 1


def test_hanging_mount_is_ended_tried_again_and_then_fails_the_boot(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.add_program("mount", "exec sleep 60")
    assert not vm.boot()
    assert vm.steps[-1] == "mount failed /home 10.0.0.2:/home: timed out after 0.4 s"
    assert vm.options == ""


def test_mount_that_succeeds_at_last_is_enough(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.add_program("mount", '[ "$(wc -l < "$ROOT/calls")" -ge 3 ] || { echo refused; exit 32; }')
    assert vm.boot()
    assert "mount waiting /home 10.0.0.2:/home: status 32: refused" in vm.steps
    assert "mount done /home 10.0.0.2:/home" in vm.steps


@pytest.mark.parametrize("body", [{}, {"networks": []}, {"networks": [{}], "fileShares": [{}]}])
def test_instance_without_an_address_fails_the_boot(vm: Vm, body: dict[str, object]) -> None:
    vm.tell(keys.HOME, HOME)
    vm.servers.answer(f"/v1/{HOME}", body)
    assert not vm.boot()
    assert vm.steps[-1] == f"mount failed {HOME} has no address that mount takes: ''"


def test_address_cannot_be_taken_for_an_option(vm: Vm) -> None:
    vm.tell(keys.LUSTRES, SCRATCH)
    vm.servers.answer(f"/lustre/v1/{SCRATCH}", {"mountPoint": "-o suid /x"})
    assert not vm.boot()
    assert not mounts(vm)


@pytest.mark.parametrize("name", ["data", "projects/p/locations/z/instances/../../etc", "-o"])
def test_name_that_is_no_instance_fails_the_boot(vm: Vm, name: str) -> None:
    vm.tell(keys.FILESTORES, name)
    assert not vm.boot()
    assert "is no instance to mount on" in vm.steps[-1]


def test_image_without_mount_fails_the_boot(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.remove_program("mount")
    assert not vm.boot()
    assert vm.steps[-1] == "mount failed mount is not installed in the image"

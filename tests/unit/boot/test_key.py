"""The key of munge or Slurm: from Secret Manager into one private file, or a reason why not."""

from __future__ import annotations

import base64
import os
import pwd
from pathlib import Path

import pytest

from slurm_hooks.boot import keys
from tests.unit.boot.vms import KEY, SECRET, TOKEN, Vm

ACCESS = f"/v1/{SECRET}:access"


def munge_key(vm: Vm) -> Path:
    return vm.root / "etc/munge/munge.key"


def test_key_is_private_to_its_daemon(vm: Vm) -> None:
    assert vm.boot()
    assert munge_key(vm).read_bytes() == KEY
    assert munge_key(vm).stat().st_mode & 0o7777 == 0o400
    assert munge_key(vm).parent.stat().st_mode & 0o7777 == 0o700
    if os.geteuid() == 0:
        assert munge_key(vm).stat().st_uid == pwd.getpwnam("munge").pw_uid


def test_key_of_slurm_lies_where_slurm_looks_for_it(vm: Vm) -> None:
    vm.tell(keys.AUTHENTICATION, "slurm")
    assert vm.boot()
    assert (vm.root / "etc/slurm/slurm.key").read_bytes() == KEY
    assert not munge_key(vm).exists()


def test_new_version_of_the_key_takes_the_place_of_the_old_one(vm: Vm) -> None:
    assert vm.boot()
    new = b"another-key-" * 10
    vm.servers.answer(ACCESS, {"payload": {"data": base64.b64encode(new).decode()}})
    assert vm.boot()
    assert munge_key(vm).read_bytes() == new


def test_key_that_others_can_read_is_written_anew(vm: Vm) -> None:
    assert vm.boot()
    munge_key(vm).chmod(0o644)
    assert vm.boot()
    assert munge_key(vm).stat().st_mode & 0o7777 == 0o400


def test_image_with_a_key_needs_no_secret(vm: Vm) -> None:
    vm.tell(keys.KEY_SECRET, "")
    assert not vm.boot()
    assert vm.steps[-1].endswith("in the image and no key secret in the metadata")
    vm.file("etc/munge/munge.key", "the image's")
    assert vm.boot()
    assert munge_key(vm).read_text() == "the image's"
    assert not any(token for _, token in vm.servers.asked)


def test_refused_secret_fails_the_boot_at_once_with_the_reason(vm: Vm) -> None:
    vm.servers.refuse(ACCESS, 403, "Permission 'secretmanager.versions.access'\n denied")
    assert not vm.boot()
    assert vm.steps[-1] == (
        f"key failed {SECRET}: 403 Permission 'secretmanager.versions.access' denied"
    )
    assert vm.servers.asked.count((ACCESS, f"Bearer {TOKEN}")) == 1
    assert not munge_key(vm).exists()


def test_service_in_trouble_is_asked_again_until_its_time_is_over(vm: Vm) -> None:
    vm.servers.refuse(ACCESS, 503, "later")
    assert not vm.boot()
    assert f"key waiting {SECRET}: the service answers 503" in vm.steps
    assert vm.steps[-1] == f"key failed {SECRET}: the service answers 503"
    assert vm.servers.asked.count((ACCESS, f"Bearer {TOKEN}")) > 1


@pytest.mark.parametrize(
    ("payload", "failure"),
    [
        ({}, "has 0 bytes: a key has 32 to 1024"),
        ({"payload": "x"}, "has 0 bytes"),
        ({"payload": {"data": "%%%"}}, "has no payload that can be read"),
        ({"payload": {"data": base64.b64encode(b"short").decode()}}, "has 5 bytes"),
        ({"payload": {"data": base64.b64encode(b"x" * 1025).decode()}}, "has 1025 bytes"),
    ],
)
def test_payload_that_is_no_key_fails_the_boot(
    vm: Vm, payload: dict[str, object], failure: str
) -> None:
    vm.servers.answer(ACCESS, payload)
    assert not vm.boot()
    assert failure in vm.steps[-1]
    assert not munge_key(vm).exists()


@pytest.mark.parametrize("secret", ["munge", "projects/p/secrets/s", f"{SECRET}?x=y"])
def test_name_that_is_no_version_of_a_secret_fails_the_boot(vm: Vm, secret: str) -> None:
    vm.tell(keys.KEY_SECRET, secret)
    assert not vm.boot()
    assert vm.steps[-1] == "key failed the key secret is not projects/P/secrets/S/versions/V"


def test_vm_without_a_service_account_is_told_what_to_set(vm: Vm) -> None:
    del vm.servers.replies["/computeMetadata/v1/instance/service-accounts/default/token"]
    assert not vm.boot()
    assert vm.steps[-1] == (
        "key failed the VM has no service account: set runtime_spec.service_account"
    )

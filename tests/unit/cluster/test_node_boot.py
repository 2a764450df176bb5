"""The settings that nodes are told: what may be written, and what nodes then read."""

from __future__ import annotations

import pytest

from slurm_hooks.boot import identity
from slurm_hooks.cluster.node_boot import Authentication, NodeBoot
from tests.unit.cluster.files import build, changed, mistakes

HOME = "projects/p/locations/us-central1-a/instances/home"


def test_settings_are_read_whole() -> None:
    settings = {
        "controllers": ["ctl-0.c.p.internal", "10.0.0.5:6820"],
        "authentication": "slurm",
        "key_secret": "projects/p/secrets/SLURM_KEY/versions/latest",
        "mount_sources": {HOME: "10.0.0.2:/home"},
        "nfs_mount_options": "vers=4.1,nconnect=8",
        "lustre_mount_options": "flock",
        "startup_script_timeout_seconds": "60",
    }
    assert build(changed(slurm_hooks=settings)).node_boot == NodeBoot(
        controllers=("ctl-0.c.p.internal", "10.0.0.5:6820"),
        authentication=Authentication.SLURM,
        key_secret="projects/p/secrets/SLURM_KEY/versions/latest",
        mount_sources=((HOME, "10.0.0.2:/home"),),
        nfs_mount_options="vers=4.1,nconnect=8",
        lustre_mount_options="flock",
        startup_script_timeout_seconds=60,
    )


def test_file_without_settings_has_the_usual_ones() -> None:
    assert build(changed()).node_boot == NodeBoot()


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("controllers", ["ctl -f"], "controllers[0]"),
        ("controllers", ["ctl", "ctl:99999"], "controllers[1]"),
        ("controllers", ["-ctl"], "controllers[0]"),
        ("authentication", "none", "authentication"),
        ("key_secret", "munge", "key_secret"),
        ("key_secret", "projects/PROJECT_ID/secrets/s/versions/1", "key_secret"),
        ("nfs_mount_options", "hard suid", "nfs_mount_options"),
        ("lustre_mount_options", "$(x)", "lustre_mount_options"),
        ("mount_sources", ["x"], "mount_sources"),
        ("mount_sources", {"home": "10.0.0.2:/home"}, "mount_sources"),
        ("mount_sources", {HOME: "a b"}, "mount_sources"),
    ],
)
def test_wrong_setting_is_told_at_its_place(field: str, value: object, path: str) -> None:
    assert list(mistakes(changed(slurm_hooks={field: value}))) == [f"slurm_hooks.{path}"]


def test_startup_script_must_end_before_the_boot_does() -> None:
    settings = {"boot_timeout_seconds": 900}
    assert not mistakes(changed(slurm_hooks=settings))
    found = mistakes(changed(slurm_hooks=settings, node_pools__1__startup_script="true"))
    assert list(found) == ["slurm_hooks.startup_script_timeout_seconds"]


def test_both_sides_know_the_same_ways_to_authenticate() -> None:
    assert [str(one) for one in Authentication] == [str(one) for one in identity.Authentication]

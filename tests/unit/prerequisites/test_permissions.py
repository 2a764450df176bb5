"""The list of permissions covers every call that the controller can make."""

from __future__ import annotations

import inspect
from dataclasses import replace

from slurm_hooks.compute.client import ComputeClient
from slurm_hooks.prerequisites.permissions import PERMISSIONS_BY_CALL, needed_permissions
from tests.unit.cluster.files import build
from tests.unit.prerequisites.cluster_files import rich_document


def test_every_call_of_the_client_has_its_permissions() -> None:
    methods = inspect.getmembers(ComputeClient, inspect.isfunction)
    calls = {name for name, _ in methods if not name.startswith("_")}
    assert set(PERMISSIONS_BY_CALL) == calls
    assert all(PERMISSIONS_BY_CALL.values())


def test_only_who_places_jobs_needs_policies_and_only_public_addresses_need_theirs() -> None:
    cluster = build(rich_document())
    plain = needed_permissions(cluster)
    pool = cluster.pools["a3u"]
    placed = {**cluster.pools, "a3u": replace(pool, compact_placement=True)}
    assert needed_permissions(replace(cluster, pools=placed)) - plain == {
        "compute.resourcePolicies.create",
        "compute.resourcePolicies.delete",
        "compute.resourcePolicies.use",
    }
    public = {**cluster.pools, "a3u": replace(pool, public_ip=True)}
    more = needed_permissions(replace(cluster, pools=public)) - plain
    assert more == {"compute.subnetworks.useExternalIp"}

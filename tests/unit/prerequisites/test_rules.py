"""What each rule makes of facts, without any service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurm_hooks.prerequisites.facts import (
    FileSystem,
    Image,
    Network,
    PolicyBinding,
    Reservation,
    SecretVersion,
    Subnetwork,
    ZonalName,
)
from slurm_hooks.prerequisites.model import Outcome, is_good
from slurm_hooks.prerequisites.rules.services import LOOKED_WITH, needed_services
from slurm_hooks.prerequisites.run import judge
from tests.unit.cluster.files import build
from tests.unit.prerequisites.cluster_files import (
    ACCOUNT,
    IMAGE,
    INSTANCES,
    RESERVATION,
    rich_document,
)
from tests.unit.prerequisites.good_facts import (
    AGENT,
    CLOSED,
    NETWORK,
    REGION,
    SILENT,
    SUBNETWORK,
    ZONE,
    bad,
    cluster,
    good_facts,
)


def test_nothing_is_wrong_with_good_facts() -> None:
    assert bad() == []


FAIL, WARN, UNKNOWN = Outcome.FAIL, Outcome.WARN, Outcome.UNKNOWN
ONE_PLACE = [
    ({"permissions": frozenset()}, "own permissions", FAIL, "instanceAdmin.v1"),
    ({"permissions": SILENT}, "own permissions", UNKNOWN, ""),
    ({"account_permissions": frozenset()}, "node service account", FAIL, "serviceAccountUser"),
    ({"account_permissions": None}, "node service account", FAIL, "service-accounts create nodes"),
    ({"account_permissions": SILENT}, "node service account", UNKNOWN, ""),
    ({"services": SILENT}, "enabled APIs", UNKNOWN, ""),
    ({"services": CLOSED}, "enabled APIs", UNKNOWN, "serviceUsageViewer"),
    ({"network": CLOSED}, "network", UNKNOWN, "roles/compute.networkViewer"),
    ({"network": None}, "network", FAIL, "networks create default --subnet-mode=custom"),
    ({"subnetworks": {SUBNETWORK: None}}, "subnetwork", FAIL, "subnets create default"),
    ({"subnetworks": {SUBNETWORK: SILENT}}, "subnetwork", UNKNOWN, ""),
    (
        {"subnetworks": {SUBNETWORK: Subnetwork("projects/123/global/networks/other")}},
        "subnetwork",
        FAIL,
        "",
    ),
    ({"images": {IMAGE: None}}, "image", FAIL, "images list --project=demo"),
    ({"images": {IMAGE: CLOSED}}, "image", UNKNOWN, "roles/compute.imageUser"),
    ({"images": {IMAGE: Image("ARM64")}}, "image", FAIL, ""),
    ({"images": {IMAGE: Image("", "DELETED")}}, "image", FAIL, "images deprecate node"),
    ({"images": {IMAGE: Image("", "DEPRECATED")}}, "image", WARN, "images list"),
    ({"disk_types": {ZonalName(ZONE, "x"): None}}, "disk type", FAIL, "--filter=name=x"),
    ({"disk_types": {ZonalName(ZONE, "x"): SILENT}}, "disk type", UNKNOWN, ""),
    ({"machine_types": {ZonalName(ZONE, "x"): None}}, "machine type", FAIL, "machine-types list"),
    (
        {"accelerator_types": {ZonalName(ZONE, "x"): None}},
        "accelerator type",
        FAIL,
        "accelerator-types list",
    ),
    ({"quotas": {REGION: SILENT}}, "quota", UNKNOWN, ""),
    ({"reservations": {RESERVATION: None}}, "reservation", FAIL, "reservations create r1"),
    ({"reservations": {RESERVATION: CLOSED}}, "reservation", UNKNOWN, "roles/compute.viewer"),
    (
        {"reservations": {RESERVATION: Reservation("a4-highgpu-4g", 3, 0, "READY", True)}},
        "reservation",
        FAIL,
        "",
    ),
    (
        {"reservations": {RESERVATION: Reservation("a4-highgpu-8g", 3, 0, "READY", False)}},
        "reservation",
        FAIL,
        "",
    ),
    (
        {"reservations": {RESERVATION: Reservation("a4-highgpu-8g", 3, 0, "CREATING", True)}},
        "reservation",
        WARN,
        "",
    ),
    (
        {"reservations": {RESERVATION: Reservation("a4-highgpu-8g", 2, 0, "READY", True)}},
        "reservation size",
        WARN,
        "reservations update r1 --zone=us-central1-a --vm-count=3",
    ),
    (
        {"reservations": {RESERVATION: Reservation("a4-highgpu-8g", 0, 0, "READY", True)}},
        "reservation size",
        FAIL,
        "--vm-count=3",
    ),
    (
        {"filestores": {f"{INSTANCES}/home": CLOSED}},
        "Filestore instance",
        UNKNOWN,
        "roles/file.viewer",
    ),
    (
        {"lustres": {f"{INSTANCES}/scratch": FileSystem(NETWORK, "CREATING")}},
        "Lustre instance",
        FAIL,
        "lustre instances describe scratch",
    ),
    ({"secret": CLOSED}, "key secret", UNKNOWN, "roles/secretmanager.viewer"),
    ({"secret": SecretVersion("DESTROYED")}, "key secret", FAIL, "versions add munge"),
    ({"secret": SecretVersion("DISABLED")}, "key secret", FAIL, "versions enable 1"),
    ({"secret": None}, "key secret", FAIL, "versions add munge"),
    ({"secret": None, "secret_policy": None}, "key secret", FAIL, "secrets create munge"),
    ({"secret_policy": ()}, "key secret", FAIL, "roles/secretmanager.secretAccessor"),
    ({"secret_policy": SILENT}, "key secret", UNKNOWN, "roles/secretmanager.secretAccessor"),
]


@pytest.mark.parametrize(("changes", "check", "outcome", "fix"), ONE_PLACE)
def test_one_wrong_fact_is_one_finding_with_its_command(
    changes: dict[str, Any], check: str, outcome: Outcome, fix: str
) -> None:
    (finding,) = bad(**changes)
    assert (finding.check, finding.outcome) == (check, outcome)
    command = " ".join(finding.fix)
    assert fix in command
    assert bool(fix) == bool(command)
    assert finding.detail
    assert is_good((finding,)) is (outcome is not Outcome.FAIL)


def test_missing_apis_are_named_one_by_one() -> None:
    found = {one.subject: one for one in bad(services=frozenset())}
    assert set(found) == {
        "compute.googleapis.com",
        "file.googleapis.com",
        "lustre.googleapis.com",
        "secretmanager.googleapis.com",
        *LOOKED_WITH,
    }
    assert found["file.googleapis.com"].outcome is Outcome.FAIL
    assert found["iam.googleapis.com"].outcome is Outcome.WARN
    assert found["file.googleapis.com"].fix[:4] == (
        "gcloud",
        "services",
        "enable",
        "file.googleapis.com",
    )


def agent_findings(*roles: str, **changes: Any) -> dict[str, Outcome]:
    bindings = (*(PolicyBinding(role, (AGENT,)) for role in roles), LOOKS)
    of = cluster()
    findings = judge(of, replace(good_facts(of), **{"policy": bindings, **changes}))
    agent = "Google APIs Service Agent"
    return {one.subject.split()[1]: one.outcome for one in findings if one.check == agent}


LOOKS = PolicyBinding("roles/viewer", (f"serviceAccount:{ACCOUNT}",))
BOTH = {"create": Outcome.PASS, "attach": Outcome.PASS}
NEITHER = {"create": Outcome.FAIL, "attach": Outcome.FAIL}


@pytest.mark.parametrize(
    ("roles", "outcomes"),
    [
        (("roles/editor",), BOTH),
        (("roles/owner",), BOTH),
        (("roles/compute.instanceGroupManagerServiceAgent",), BOTH),
        (("roles/compute.instanceAdmin.v1", "roles/iam.serviceAccountUser"), BOTH),
        (("roles/compute.admin", "roles/iam.serviceAccountUser"), BOTH),
        (("roles/compute.instanceAdmin.v1",), {**BOTH, "attach": Outcome.FAIL}),
        (("roles/iam.serviceAccountUser",), {**BOTH, "create": Outcome.FAIL}),
        (("roles/viewer",), NEITHER),
        ((), NEITHER),
    ],
)
def test_the_agent_needs_one_complete_role_or_two(
    roles: tuple[str, ...], outcomes: dict[str, Outcome]
) -> None:
    assert agent_findings(*roles) == outcomes


def test_the_agent_may_use_the_account_by_a_role_on_it_alone() -> None:
    on_account = (PolicyBinding("roles/iam.serviceAccountUser", (AGENT,)),)
    found = agent_findings("roles/compute.admin", account_policy=on_account)
    assert found == BOTH


def test_what_a_folder_may_hide_is_not_called_missing() -> None:
    assert agent_findings(ancestors=SILENT) == {"create": UNKNOWN, "attach": UNKNOWN}
    above = (PolicyBinding("roles/editor", (AGENT,)),)
    assert agent_findings(ancestors=above) == BOTH


def test_without_the_projects_number_nothing_is_said_of_the_agent() -> None:
    assert agent_findings(identity=CLOSED) == {"create": UNKNOWN}
    assert agent_findings(identity=None) == {"create": UNKNOWN}


def test_a_network_that_makes_no_subnetworks_needs_one_named() -> None:
    of = cluster(network={"network": NETWORK})
    assert bad(of, subnetworks={}) == []
    (found,) = bad(of, subnetworks={}, network=Network(is_automatic=False))
    assert (found.check, found.outcome) == ("subnetwork", FAIL)
    assert "network.subnetwork" in found.detail


@pytest.mark.parametrize(
    ("network", "good"),
    [
        ("default", True),
        (NETWORK, True),
        ("projects/123/global/networks/default", True),
        ("projects/9/global/networks/default", False),
        ("other", False),
    ],
)
def test_storage_must_be_in_the_clusters_network_however_that_is_written(
    network: str, good: bool
) -> None:
    found = bad(filestores={f"{INSTANCES}/home": FileSystem(network, "READY")})
    assert [one.outcome for one in found] == ([] if good else [FAIL])


def test_nodes_need_not_ask_for_what_the_cluster_file_tells() -> None:
    policy = (PolicyBinding("roles/editor", (AGENT,)),)
    asking = [one.subject for one in bad(policy=policy)]
    assert asking == ["may read Filestore instances of demo", "may read Lustre instances of demo"]
    told = {f"{INSTANCES}/home": "10.0.0.2:/share"}
    settings = {**rich_document()["slurm_hooks"], "mount_sources": told}
    assert [one.subject for one in bad(cluster(slurm_hooks=settings), policy=policy)] == asking[1:]


def test_a_cluster_without_secrets_and_lustre_needs_fewer_apis() -> None:
    document = rich_document()
    del document["slurm_hooks"], document["node_pools"][1]["lustres"]
    assert needed_services(build(document)) == ("compute.googleapis.com", "file.googleapis.com")

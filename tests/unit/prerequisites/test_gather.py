"""What is read of a project, one thing failing or not: a client that a test breaks in places."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.prerequisites.answers import quota_from
from slurm_hooks.prerequisites.facts import (
    PolicyBinding,
    ProjectIdentity,
    Quota,
    QuotaName,
    Unread,
)
from slurm_hooks.prerequisites.gather import gather
from slurm_hooks.prerequisites.model import Outcome
from slurm_hooks.prerequisites.run import judge
from tests.unit.cluster.files import ABSENT, build
from tests.unit.prerequisites.cluster_files import ACCOUNT, rich_document

DENIED = ComputeError(ErrorKind.PERMISSION, "PERMISSION_DENIED", "no", 403)
GONE = ComputeError(ErrorKind.GONE, "NOT_FOUND", "none", 404)
EDITOR = PolicyBinding("roles/editor", ("serviceAccount:123@cloudservices.gserviceaccount.com",))


class Client:
    """Answers each method with what a test said, by its argument where it has one.

    A ComputeError among the answers is raised; what nobody said is GONE.
    """

    project = "demo"

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any) -> Any:
            answer = self._answers.get(method, GONE)
            if isinstance(answer, dict):
                answer = answer.get(arguments[0], GONE)
            if isinstance(answer, ComputeError):
                raise answer
            return answer

        return call


def facts_of(client: Client, **changes: Any) -> Any:
    document = {**rich_document(), **changes}
    document = {key: value for key, value in document.items() if value is not ABSENT}
    return gather(build(document), client)


IN_FOLDER = ProjectIdentity("123", "folders/1")
ABOVE = {"projects/demo": (), "folders/1": (), "organizations/2": (EDITOR,)}
PARENTS = {"folders/1": "organizations/2"}


def test_the_policies_of_all_folders_and_the_organisation_are_read() -> None:
    facts = facts_of(Client(identity=IN_FOLDER, policy=ABOVE, parent_of=PARENTS))
    assert facts.ancestors == (EDITOR,)


@pytest.mark.parametrize(
    ("answers", "hidden"),
    [
        ({"policy": {**ABOVE, "folders/1": DENIED}, "parent_of": PARENTS}, "from folders/1"),
        ({"policy": ABOVE, "parent_of": {"folders/1": DENIED}}, "what is above folders/1"),
        (
            {"policy": {**ABOVE, "organizations/2": DENIED}, "parent_of": PARENTS},
            "from organizations/2",
        ),
    ],
)
def test_an_ancestor_that_may_not_be_read_hides_what_it_grants(
    answers: dict[str, Any], hidden: str
) -> None:
    facts = facts_of(Client(identity=IN_FOLDER, **answers))
    assert isinstance(facts.ancestors, Unread)
    assert hidden in facts.ancestors.why


def test_a_project_without_a_parent_inherits_nothing() -> None:
    facts = facts_of(Client(identity=ProjectIdentity("123"), policy={"projects/demo": ()}))
    assert facts.ancestors == ()


def test_folders_that_lie_in_each_other_end() -> None:
    policies = {"projects/demo": (), "folders/1": ()}
    client = Client(identity=IN_FOLDER, policy=policies, parent_of={"folders/1": "folders/1"})
    assert facts_of(client).ancestors == ()


def test_what_does_not_exist_is_told_from_what_may_not_be_read() -> None:
    facts = facts_of(Client(network=GONE, services=DENIED))
    assert facts.network is None
    assert facts.services == Unread("PERMISSION_DENIED: no", denied=True)


def test_nodes_without_an_account_of_their_own_run_as_the_default_one() -> None:
    client = Client(identity=ProjectIdentity("123"))
    default = "123-compute@developer.gserviceaccount.com"
    assert facts_of(client, runtime_spec=ABSENT).account == default
    assert facts_of(client).account == ACCOUNT
    assert facts_of(Client(identity=DENIED), runtime_spec=ABSENT).account == ""


def test_commands_for_a_caller_who_is_not_known_say_where_the_address_belongs() -> None:
    cluster = build(rich_document())
    facts = gather(cluster, Client(caller=DENIED, permissions=frozenset()))
    assert facts.caller == ""
    (own,) = (one for one in judge(cluster, facts) if one.check == "own permissions")
    assert own.outcome is Outcome.FAIL
    assert "--member=user:YOUR-ADDRESS" in own.fix


H200 = QuotaName("PREEMPTIBLE_NVIDIA_H200_GPUS")


def test_what_a_region_does_not_list_is_asked_of_cloud_quotas() -> None:
    listed = {QuotaName("INSTANCES"): Quota(7)}
    quotas = {"us-central1": listed, "": {}}
    facts = facts_of(Client(quotas=quotas, quota={"us-central1": Quota(3)}))
    found = facts.quotas["us-central1"]
    assert found[QuotaName("INSTANCES")] == Quota(7)
    assert found[H200] == Quota(3)
    silent = facts_of(Client(quotas=quotas, quota=DENIED))
    assert silent.quotas["us-central1"] == listed


@pytest.mark.parametrize(
    ("region", "family", "limit"),
    [("r1", "F", 5.0), ("r2", "F", 2.0), ("r1", "G", 1.0), ("r3", "F", None)],
)
def test_the_nearest_entry_of_a_quota_counts(region: str, family: str, limit: float | None) -> None:
    places = ["r1", "r2"]
    body = {
        "dimensionsInfos": [
            {"dimensions": {"region": "r1", "gpu_family": "F"}, "details": {"value": "5"}},
            {
                "dimensions": {"gpu_family": "F"},
                "details": {"value": "2"},
                "applicableLocations": places,
            },
            {"details": {"value": "1"}, "applicableLocations": places},
        ]
    }
    found = quota_from(body, region, family)
    assert (found.limit if found else None) == limit

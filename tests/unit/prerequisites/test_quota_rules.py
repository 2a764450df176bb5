"""What the rules make of quotas."""

from __future__ import annotations

import pytest

from slurm_hooks.prerequisites.facts import (
    Quota,
    QuotaName,
)
from slurm_hooks.prerequisites.model import Outcome
from slurm_hooks.prerequisites.rules.quotas import needs_by_region
from tests.unit.cluster.files import build
from tests.unit.prerequisites.cluster_files import (
    rich_document,
)
from tests.unit.prerequisites.good_facts import (
    H200,
    REGION,
    VMS,
    bad,
    good_quotas,
)

FAIL, WARN, UNKNOWN = Outcome.FAIL, Outcome.WARN, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [(0, FAIL), (15, WARN), (16, None), (-1, None)],
)
def test_flex_start_gpus_are_counted_among_the_preemptible_ones(
    limit: int, outcome: Outcome | None
) -> None:
    quotas = {**good_quotas(), QuotaName("PREEMPTIBLE_NVIDIA_H200_GPUS"): Quota(limit)}
    found = bad(quotas={REGION: quotas})
    assert [one.outcome for one in found] == ([outcome] if outcome else [])
    for one in found:
        assert "--quota-id=PREEMPTIBLE-NVIDIA-H200-GPUS-per-project-region" in one.fix
        assert "--preferred-value=16" in one.fix
        assert f"--dimensions=region={REGION}" in one.fix


def test_static_nodes_must_fit_their_quota_and_dynamic_ones_may_wait() -> None:
    document = rich_document()
    document["node_pools"][1]["scaling_spec"] = {"min_node_count": 1, "max_node_count": 2}
    for limit, outcome in ((7, FAIL), (8, WARN)):
        quotas = {**good_quotas(), QuotaName("PREEMPTIBLE_NVIDIA_H200_GPUS"): Quota(limit)}
        (found,) = bad(build(document), quotas={REGION: quotas})
        assert (found.outcome, found.subject.split()[2]) == (outcome, REGION)


def test_on_demand_gpus_have_a_quota_of_their_own_and_reserved_ones_none() -> None:
    document = rich_document()
    document["node_pools"][1]["provisioning_model"] = "ON_DEMAND"
    needs = needs_by_region(build(document))[REGION]
    assert needs.most == {VMS: 3, H200: 16}
    assert needs.least == {VMS: 1, H200: 0}


def test_a_quota_that_the_region_does_not_list_is_not_called_missing() -> None:
    quotas = {key: one for key, one in good_quotas().items() if key.metric == "INSTANCES"}
    assert [one.outcome for one in bad(quotas={REGION: quotas})] == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    ("quota", "outcome"),
    [(Quota(-1), None), (Quota(0), FAIL), (Quota(5, usage=5), WARN), (Quota(5, usage=4), None)],
)
def test_active_resize_requests_need_places(quota: Quota, outcome: Outcome | None) -> None:
    found = bad(quotas={REGION: {**good_quotas(), QuotaName("ACTIVE_RESIZE_REQUESTS"): quota}})
    assert [one.outcome for one in found] == ([outcome] if outcome else [])


@pytest.mark.parametrize(("limit", "outcome"), [(0, FAIL), (15, WARN), (16, None)])
def test_all_gpus_together_have_a_quota_too(limit: int, outcome: Outcome | None) -> None:
    everywhere = {QuotaName("GPUS_ALL_REGIONS"): Quota(limit)}
    found = bad(quotas={REGION: good_quotas(), "": everywhere})
    assert [one.outcome for one in found] == ([outcome] if outcome else [])
    for one in found:
        assert "--quota-id=GPUS-ALL-REGIONS-per-project" in one.fix
        assert "--preferred-value=16" in one.fix

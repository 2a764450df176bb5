"""What a login pool may be: always there, of one group, and never for want of capacity or time."""

from __future__ import annotations

import pytest

from tests.unit.cluster.files import changed, mistakes

LOGIN = "node_pools[0]"


def sized(count: int) -> dict[str, int]:
    return {"min_node_count": count, "max_node_count": count}


def test_login_pool_cannot_be_flex_start() -> None:
    found = mistakes(
        changed(
            node_pools__0__machine_spec={"machine_type": "a3-ultragpu-8g"},
            node_pools__0__boot_disk={"boot_disk_type": "hyperdisk-balanced"},
            node_pools__0__provisioning_model="FLEX_START",
        )
    )
    assert list(found) == [f"{LOGIN}.provisioning_model"]


@pytest.mark.parametrize("model", ["ON_DEMAND", "SPOT"])
def test_login_pool_may_be_of_another_model(model: str) -> None:
    assert mistakes(changed(node_pools__0__provisioning_model=model)) == {}


def test_login_nodes_fit_into_one_group() -> None:
    assert mistakes(changed(node_pools__0__scaling_spec=sized(1000))) == {}
    found = mistakes(changed(node_pools__0__scaling_spec=sized(1001)))
    assert list(found) == [f"{LOGIN}.scaling_spec.max_node_count"]

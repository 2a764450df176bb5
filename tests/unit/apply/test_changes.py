"""What a changed cluster file comes to: field by field, as docs/cluster_config.md says."""

from __future__ import annotations

import dataclasses
import re

import pytest

from slurm_hooks.apply.changes import Changes, Effect, PartChange, compare
from slurm_hooks.apply.fields import CLUSTER_FIELDS, POOL_FIELDS, Rule
from slurm_hooks.cluster.spec import ExtensionSpec, PoolExtensionSpec
from slurm_hooks.cluster.topology import Cluster, NodePool
from tests.unit.apply.field_changes import CASES, SLURM, WITHOUT_A_CASE, Case
from tests.unit.cluster.files import build, changed, set_field
from tests.unit.cluster.test_documentation import DOCUMENT, SECTIONS, fields_of


def compare_case(case: Case) -> Changes:
    before, after = changed(**case.base), changed(**case.base)
    set_field(before, case.path, case.before)
    set_field(after, case.path, case.after)
    return compare(build(before), build(after))


def documented_rules() -> dict[str, str]:
    """The last column of the tables of the cluster file's own fields, by path."""
    prefixes = {
        "The cluster": "",
        "`node_pools[]`": "node_pools[].",
        "`orchestrator_spec.slurm_spec`": "orchestrator_spec.slurm_spec.",
    }
    found = {}
    for title, prefix in prefixes.items():
        section = DOCUMENT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for row in section.partition("| field |")[2].partition("\n\n")[0].splitlines()[2:]:
            cells = row.split(" | ")
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[f"{prefix}{name}"] = cells[-1].strip(" |")
    return found


def parts_of(changes: Changes) -> dict[str, PartChange]:
    return {part.part: part for part in changes.parts}


def rule_of(changes: Changes) -> Rule:
    if changes.refusals:
        return Rule.FIXED
    effects = {part.effect for part in changes.parts}
    return Rule.NEW_VMS if Effect.REPLACE in effects else Rule.AT_ONCE


@pytest.mark.parametrize(
    ("path", "case"), [(path, case) for path, cases in CASES.items() for case in cases]
)
def test_a_changed_field_does_what_is_documented_of_it(path: str, case: Case) -> None:
    changes = compare_case(case)
    assert not changes.is_empty or changes.refusals
    ours = ".slurm_hooks." in path
    documented = "yes" if ours else documented_rules()[path]
    assert rule_of(changes) == ("no" if documented == "out" else documented)


def test_every_field_has_a_case_or_a_reason_to_have_none() -> None:
    leaves = set()
    for title, prefix in (
        ("The cluster", ""),
        ("`node_pools[]`", "node_pools[]."),
        ("`orchestrator_spec.slurm_spec`", "orchestrator_spec.slurm_spec."),
        ("Ours: `node_pools[].slurm_hooks`", "node_pools[].slurm_hooks."),
    ):
        model = SECTIONS[title]
        leaves |= {f"{prefix}{name}" for name in fields_of(model)}
        leaves -= {f"{prefix}{name}" for name in model.not_read}
    inner = {path for path in leaves if any(o != path and o.startswith(path) for o in leaves)}
    sections = {"node_pools", "orchestrator_spec.slurm_spec", "slurm_hooks"}
    sections |= {"node_pools[].slurm_hooks"}
    assert leaves - inner - sections == (CASES.keys() | WITHOUT_A_CASE.keys())


def test_every_attribute_of_the_model_has_its_rule() -> None:
    pool = {field.name for field in dataclasses.fields(NodePool)}
    assert pool - {row.attribute for row in POOL_FIELDS} == {"pool_id", "region", "is_login"}
    cluster = {field.name for field in dataclasses.fields(Cluster)}
    compared_by_field = {"pools", "policy", "node_boot"}
    assert cluster - {row.attribute for row in CLUSTER_FIELDS} == compared_by_field


def test_our_own_settings_hold_at_once() -> None:
    for name in ("boot_timeout_seconds", "repair_days"):
        assert name in ExtensionSpec.model_fields
        after = changed(slurm_hooks={name: 11})
        changes = compare(build(changed()), build(after))
        assert rule_of(changes) is Rule.AT_ONCE
        assert [field.path for field in parts_of(changes)["cluster"].fields] == [
            f"slurm_hooks.{name}"
        ]
    assert set(PoolExtensionSpec.model_fields) == {
        path.rpartition(".")[2] for path in CASES if ".slurm_hooks." in path
    }


def test_first_file_creates_all_pools() -> None:
    changes = compare(None, build(changed()))
    assert {part.effect for part in changes.parts} == {Effect.CREATE}
    assert parts_of(changes)["pool a3u"].created == ("flexvm-a3u-0", "flexvm-a3u-1")
    assert parts_of(changes)["pool login"].is_login


def test_same_file_keeps_everything() -> None:
    changes = compare(build(changed()), build(changed(display_name="flexvm")))
    assert changes.is_empty
    assert not changes.refusals


def test_default_that_is_written_out_is_no_change() -> None:
    after = changed(node_pools__0__provisioning_model="ON_DEMAND")
    assert compare(build(changed()), build(after)).is_empty


def test_pool_that_shrinks_names_the_nodes_that_leave_and_one_that_grows_those_that_come() -> None:
    small, large = build(changed()), build(changed(node_pools__1__scaling_spec__max_node_count=4))
    grown = parts_of(compare(small, large))["pool a3u"]
    assert (grown.created, grown.removed) == (("flexvm-a3u-2", "flexvm-a3u-3"), ())
    shrunk = parts_of(compare(large, small))["pool a3u"]
    assert (shrunk.created, shrunk.removed) == ((), ("flexvm-a3u-2", "flexvm-a3u-3"))
    assert shrunk.effect is Effect.CHANGE


def test_pool_under_a_new_id_is_created_and_the_old_one_removed() -> None:
    after = changed(
        node_pools__1__id="b4",
        **{f"{SLURM}__partitions": [{"id": "a3u", "node_pool_ids": ["b4"]}]},
    )
    parts = parts_of(compare(build(changed()), build(after)))
    assert parts["pool b4"].effect is Effect.CREATE
    assert parts["pool a3u"].effect is Effect.REMOVE
    assert parts["pool a3u"].removed == ("flexvm-a3u-0", "flexvm-a3u-1")


def test_new_vms_are_only_those_of_nodes_that_stay() -> None:
    after = changed(
        node_pools__1__boot_disk__boot_disk_size_gb=500,
        node_pools__1__scaling_spec__max_node_count=1,
    )
    changes = compare(build(changed()), build(after))
    assert changes.renewed_nodes == ("flexvm-a3u-0",)
    assert parts_of(changes)["pool a3u"].effect is Effect.REPLACE


def test_refusal_names_field_reason_and_way_out() -> None:
    after = changed(node_pools__0__machine_spec__machine_type="n2-standard-16")
    [refusal] = compare(build(changed()), build(after)).refusals
    assert refusal.path == "node_pools[0].machine_spec.machine_type"
    assert "n2-standard-8 cannot become n2-standard-16" in refusal.problem
    assert "new id" in refusal.remedy


def with_another_login_pool(**more: object) -> Cluster:
    document = changed(**more)
    second = {**document["node_pools"][0], "id": "login2"}
    document["node_pools"].append(second)
    return build(document)


def test_login_moves_to_a_new_pool_but_no_pool_changes_sides() -> None:
    replaced = changed(node_pools__0__id="login2", **{f"{SLURM}__login_node_pool_id": "login2"})
    assert compare(build(changed()), build(replaced)).refusals == ()
    both = with_another_login_pool(**{f"{SLURM}__login_node_pool_id": "login2"})
    refused = compare(build(changed()), both).refusals
    assert {refusal.path for refusal in refused} == {
        "orchestrator_spec.slurm_spec.login_node_pool_id"
    }


def test_long_values_are_cut_to_a_line() -> None:
    after = changed(node_pools__1__startup_script="echo 1\n" * 50)
    [field] = parts_of(compare(build(changed()), build(after)))["pool a3u"].fields
    assert (field.before, field.after) == ("none", "a text of 350 characters")


def test_what_nodes_are_told_to_boot_holds_on_new_vms() -> None:
    changes = compare(build(changed()), build(changed(slurm_hooks={"controllers": ["ctl"]})))
    parts = parts_of(changes)
    assert [field.path for field in parts["cluster"].fields] == ["slurm_hooks.controllers"]
    assert {parts["pool a3u"].effect, parts["pool login"].effect} == {Effect.REPLACE}

"""Nodes that are off have an address that needs no name server, and lose nothing by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_hooks.slurm.client import UNREACHABLE_ADDRESS, SlurmRefused
from slurm_hooks.slurm.model import BaseState, NodeFlag
from tests.fakes.slurm import SLURM_22_05, SLURM_24_11, SLURM_26_05, Call, FakeSlurm
from tests.unit.reconcile.builders import N0, N1, example_cluster, vm
from tests.unit.reconcile.scenario import Scenario

REASON = "slurm-hooks: job ended before its nodes came"
VM_ADDRESS = "10.0.0.7"


@pytest.fixture(params=[SLURM_22_05, SLURM_24_11, SLURM_26_05], ids=str)
def slurm(request: pytest.FixtureRequest) -> FakeSlurm:
    return FakeSlurm(version=request.param, names_are_addresses=True)


@pytest.fixture
def scenario(tmp_path: Path, slurm: FakeSlurm) -> Scenario:
    """Four nodes that are off and go by their names."""
    return Scenario(tmp_path, slurm=slurm)


def address(scenario: Scenario, name: str) -> str:
    return scenario.slurm.nodes[name].address


def orders(scenario: Scenario) -> list[Call]:
    return [call for call in scenario.slurm.calls if call.method == "set_node_addresses"]


def test_nodes_that_are_off_get_an_address_in_one_command_once(scenario: Scenario) -> None:
    scenario.run()
    assert {node.address for node in scenario.slurm.nodes.values()} == {UNREACHABLE_ADDRESS}
    scenario.run()
    (order,) = orders(scenario)
    assert order.names == tuple(scenario.slurm.nodes)


def test_ten_thousand_nodes_get_theirs_in_one_command(tmp_path: Path) -> None:
    slurm = FakeSlurm(names_are_addresses=True)
    scenario = Scenario(tmp_path, example_cluster(max_node_count=10_000), slurm)
    scenario.run()
    assert [len(order.names) for order in orders(scenario)] == [10_000]


def test_they_get_it_again_after_each_sleep_and_when_slurmctld_has_forgotten(
    scenario: Scenario,
) -> None:
    scenario.run()
    scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    assert address(scenario, N0) == "127.0.0.1"
    scenario.slurm.suspend([N0])
    scenario.run()
    scenario.slurm.slept([N0])
    assert address(scenario, N0) == N0
    scenario.run()
    assert address(scenario, N0) == UNREACHABLE_ADDRESS
    scenario.slurm.forget_addresses()
    scenario.run()
    assert address(scenario, N1) == UNREACHABLE_ADDRESS


@pytest.mark.parametrize(
    "flags",
    [
        (NodeFlag.POWERING_UP,),
        (NodeFlag.POWERED_DOWN, NodeFlag.POWER_UP),
        (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_UP),
        (NodeFlag.POWERING_DOWN,),
        (NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN),
    ],
    ids=lambda flags: "+".join(flags),
)
@pytest.mark.parametrize("base", [BaseState.IDLE, BaseState.ALLOCATED])
def test_node_on_its_way_with_a_vm_is_left_alone(
    scenario: Scenario, flags: tuple[NodeFlag, ...], base: BaseState
) -> None:
    scenario.compute.state.instances["us-central1-a", N0] = vm(N0)
    scenario.slurm.set_state(N0, base, NodeFlag.CLOUD, *flags)
    scenario.run()
    assert all(N0 not in order.names for order in orders(scenario))


@pytest.mark.parametrize("wake", [True, False], ids=["woken", "not woken yet"])
def test_node_that_a_job_gets_before_its_address_gets_it_while_it_has_no_vm(
    scenario: Scenario, wake: bool
) -> None:
    scenario.slurm.submit([N0], wake=wake)
    scenario.run()
    assert address(scenario, N0) == UNREACHABLE_ADDRESS


@pytest.mark.parametrize("address_of_vm", [N0, VM_ADDRESS])
def test_node_that_registers_meanwhile_is_left_alone(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch, address_of_vm: str
) -> None:
    scenario.slurm.submit([N0])
    read = scenario.slurm.read

    def read_then_register() -> object:
        snapshot = read()
        scenario.slurm.register([N0], address_of_vm)
        return snapshot

    monkeypatch.setattr(scenario.slurm, "read", read_then_register)
    scenario.run()
    assert address(scenario, N0) == address_of_vm
    assert address(scenario, N1) == UNREACHABLE_ADDRESS


@pytest.mark.parametrize("reason", ["disk broken", REASON, "ResumeTimeout reached"])
def test_reason_of_a_node_stays(scenario: Scenario, reason: str) -> None:
    flags = (NodeFlag.CLOUD, NodeFlag.POWERED_DOWN)
    scenario.slurm.set_state(N0, BaseState.IDLE, *flags, reason=reason)
    scenario.run()
    assert scenario.slurm.nodes[N0].reason == reason
    assert address(scenario, N0) == UNREACHABLE_ADDRESS


def test_reason_that_a_person_gives_meanwhile_stays(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = (NodeFlag.CLOUD, NodeFlag.POWERED_DOWN)
    scenario.slurm.set_state(N0, BaseState.IDLE, *flags, reason=REASON)
    read = scenario.slurm.read

    def read_then_drain() -> object:
        snapshot = read()
        scenario.slurm.set_state(N0, BaseState.IDLE, *flags, NodeFlag.DRAIN, reason="mine")
        return snapshot

    monkeypatch.setattr(scenario.slurm, "read", read_then_drain)
    scenario.run()
    assert scenario.slurm.nodes[N0].reason == "mine"


def test_registered_node_with_the_address_of_one_that_is_off_gets_its_name(
    scenario: Scenario,
) -> None:
    """Nobody could reach it; its name resolves while its VM exists."""
    scenario.slurm.submit([N0])
    scenario.settle()
    scenario.grant_all()
    scenario.settle_with_vms()
    scenario.slurm.nodes[N0] = replace(scenario.slurm.nodes[N0], address=UNREACHABLE_ADDRESS)
    scenario.run()
    assert address(scenario, N0) == N0


def test_where_nodes_that_are_up_go_by_their_names_none_is_set(scenario: Scenario) -> None:
    """Such a slurmctld takes no address from a registration."""
    scenario.slurm.set_state(N0, BaseState.IDLE, NodeFlag.CLOUD)
    scenario.run()
    assert orders(scenario) == []


def test_refused_address_is_asked_for_less_and_less_often_and_of_fewer_nodes(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def refuse(names: tuple[str, ...], address: str, reason: str) -> None:
        tries.append(len(names))
        raise SlurmRefused("Invalid node name specified")

    monkeypatch.setattr(scenario.slurm, "set_node_addresses", refuse)
    for _ in range(60):
        scenario.run()
        scenario.now += timedelta(seconds=1)
    nodes = len(scenario.slurm.nodes)
    assert tries[:4] == [nodes, nodes, nodes, 1]
    assert len(tries) < 3 + 4 * nodes

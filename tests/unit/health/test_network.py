"""Interfaces without an address are reset once; RDMA ports are up, all of them, and stay so."""

from __future__ import annotations

import pytest

from slurm_hooks.health.checks import network
from slurm_hooks.health.model import Context, Finding, Verdict
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy
from tests.unit.health.node_roots import NodeRoot
from tests.unit.health.runs import evidence_of, run_check
from tests.unit.health.tools import add_tool, tool_calls

_HEAD = "Iface\tDestination\tGateway\tFlags\n"
_ROUTE = f"{_HEAD}ens4\t00000000\t0100000A\t0003\n"
_TWO_INTERFACES = HealthPolicy(machine_types={"m": ExpectedHardware(network_interfaces=2)})


@pytest.fixture(autouse=True)
def _no_long_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_HEALING_SECONDS", 0.3)
    monkeypatch.setattr(network, "_COMMAND_SECONDS", 5.0)


def _add_interface(node: NodeRoot, name: str, driver: str = "gve") -> None:
    node.path("sys/class/net", name, "device").mkdir(parents=True)
    link = node.path("sys/class/net", name, "device/driver")
    link.symlink_to(f"/sys/bus/pci/drivers/{driver}")


@pytest.fixture
def one_interface(bare_node: NodeRoot) -> NodeRoot:
    """A node with one interface that has a route, and some that are not its own."""
    _add_interface(bare_node, "ens4")
    _add_interface(bare_node, "ens1", driver="mlx5_core")
    bare_node.path("sys/class/net/docker0").mkdir()
    bare_node.write("proc/net/route", _ROUTE)
    return bare_node


def _found(node: NodeRoot, policy: HealthPolicy | None = None) -> list[Finding]:
    evidence = evidence_of(node, machine_type="m", policy=policy or HealthPolicy())
    return run_check("network", evidence)


def test_an_interface_with_a_route_is_well_and_no_tool_is_called(one_interface: NodeRoot) -> None:
    add_tool(one_interface, "usr/sbin/ip")

    assert _found(one_interface) == []
    assert tool_calls(one_interface) == []


def test_a_node_without_interfaces_of_its_own_is_not_judged(bare_node: NodeRoot) -> None:
    bare_node.path("sys/class/net/docker0").mkdir(parents=True)

    assert _found(bare_node) == []


def test_the_driver_of_the_virtual_nic_is_known_by_its_older_name(bare_node: NodeRoot) -> None:
    _add_interface(bare_node, "ens4", driver="gvnic")
    bare_node.write("proc/net/route", _HEAD)

    assert [finding.verdict for finding in _found(bare_node)] == [Verdict.REBOOT]


def test_a_node_that_lost_all_the_interfaces_that_it_must_have_is_seen(
    bare_node: NodeRoot,
) -> None:
    (finding,) = _found(bare_node, _TWO_INTERFACES)

    assert (finding.verdict, finding.detail) == (Verdict.REBOOT, "0 of 2 network interfaces")


def test_an_address_whose_routes_are_in_another_table_is_one(one_interface: NodeRoot) -> None:
    one_interface.write("proc/net/route", _HEAD)
    add_tool(one_interface, "usr/sbin/ip", 'echo "2: ens4    inet 10.0.0.2/32 scope global ens4"')

    assert _found(one_interface) == []
    assert tool_calls(one_interface) == ["ip -4 -oneline address show dev ens4"]


def test_an_interface_that_a_reset_heals_is_a_warning(one_interface: NodeRoot) -> None:
    one_interface.write("proc/net/route", _HEAD)
    one_interface.write("healed", _ROUTE)
    add_tool(
        one_interface,
        "usr/sbin/ip",
        'case "$*" in *up) cp "$ROOT/healed" "$ROOT/proc/net/route";; esac',
    )

    (finding,) = _found(one_interface)

    assert finding.verdict is Verdict.WARN
    assert tool_calls(one_interface)[1:] == ["ip link set dev ens4 down", "ip link set dev ens4 up"]


def test_networkctl_resets_where_it_is_there(one_interface: NodeRoot) -> None:
    one_interface.write("proc/net/route", _HEAD)
    one_interface.write("healed", _ROUTE)
    add_tool(one_interface, "usr/bin/networkctl", 'cp "$ROOT/healed" "$ROOT/proc/net/route"')

    assert [finding.verdict for finding in _found(one_interface)] == [Verdict.WARN]
    assert tool_calls(one_interface) == ["networkctl reconfigure ens4"]


@pytest.mark.parametrize("ip", ["", "exit 1", "echo garbage; kill -9 $$"])
def test_an_interface_that_a_reset_does_not_heal_asks_for_a_reboot(
    one_interface: NodeRoot, ip: str
) -> None:
    one_interface.write("proc/net/route", _HEAD)
    add_tool(one_interface, "usr/sbin/ip", ip)

    (finding,) = _found(one_interface)

    assert finding.verdict is Verdict.REBOOT
    assert "ens4 has no IPv4 address" in finding.detail


@pytest.mark.parametrize("route", ["", "garbage", "Iface\n\n\t\t\n"])
def test_without_any_tool_or_readable_routes_the_interface_has_no_address(
    one_interface: NodeRoot, route: str
) -> None:
    one_interface.write("proc/net/route", route)

    assert [finding.verdict for finding in _found(one_interface)] == [Verdict.REBOOT]


def test_a_tool_that_hangs_is_left_behind(
    one_interface: NodeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_COMMAND_SECONDS", 0.2)
    one_interface.write("proc/net/route", _HEAD)
    add_tool(one_interface, "usr/sbin/ip", "sleep 60")

    assert [finding.verdict for finding in _found(one_interface)] == [Verdict.REBOOT]
    assert len(tool_calls(one_interface)) == 3


def test_somebody_who_only_looks_resets_nothing(one_interface: NodeRoot) -> None:
    one_interface.write("proc/net/route", _HEAD)
    add_tool(one_interface, "usr/sbin/ip")
    evidence = evidence_of(one_interface)
    evidence.may_act = False

    assert [finding.verdict for finding in run_check("network", evidence)] == [Verdict.REBOOT]
    assert tool_calls(one_interface) == ["ip -4 -oneline address show dev ens4"]


def test_a_second_interface_is_looked_at_only_where_it_is_expected(
    one_interface: NodeRoot,
) -> None:
    _add_interface(one_interface, "ens10", driver="virtio_net")

    assert _found(one_interface) == []
    (finding,) = _found(one_interface, _TWO_INTERFACES)
    assert finding.detail.startswith("ens10 ")


def test_an_interface_that_is_missing_is_counted(one_interface: NodeRoot) -> None:
    (finding,) = _found(one_interface, _TWO_INTERFACES)

    assert (finding.verdict, finding.detail) == (Verdict.REBOOT, "1 of 2 network interfaces")


def _add_ports(node: NodeRoot, count: int = 8) -> NodeRoot:
    for number in range(count):
        _set_port(node, number)
    return node


def _set_port(
    node: NodeRoot,
    number: int,
    state: str = "4: ACTIVE",
    physical: str = "5: LinkUp",
    rate: str = "400 Gb/sec (4X NDR)",
    downs: int | str = 0,
) -> None:
    place = f"sys/class/infiniband/mlx5_{number}/ports/1"
    for name, text in (
        ("state", state),
        ("phys_state", physical),
        ("rate", rate),
        ("counters/link_downed", str(downs)),
    ):
        node.write(f"{place}/{name}", f"{text}\n")


def _rdma(node: NodeRoot, machine_type: str = "a3-ultragpu-8g") -> list[Finding]:
    return run_check("rdma", evidence_of(node, machine_type=machine_type))


def test_eight_active_ports_are_well(bare_node: NodeRoot) -> None:
    assert _rdma(_add_ports(bare_node)) == []


def test_a_machine_type_without_rdma_needs_no_ports(bare_node: NodeRoot) -> None:
    assert _rdma(bare_node, "a3-highgpu-8g") == []


@pytest.mark.parametrize("ports", [0, 7])
def test_a_missing_port_asks_for_a_reboot(bare_node: NodeRoot, ports: int) -> None:
    (finding,) = _rdma(_add_ports(bare_node, ports))

    assert (finding.verdict, finding.detail) == (Verdict.REBOOT, f"{ports} of 8 RDMA ports")


@pytest.mark.parametrize(
    ("state", "physical"),
    [("1: DOWN", "3: Disabled"), ("2: INIT", "5: LinkUp"), ("4: ACTIVE", "3: Disabled"),
     ("", ""), ("garbage", "5: LinkUp")],
)  # fmt: skip
def test_a_port_that_is_not_up_asks_for_a_reboot(
    bare_node: NodeRoot, state: str, physical: str
) -> None:
    _add_ports(bare_node)
    _set_port(bare_node, 5, state, physical)

    (finding,) = _rdma(bare_node)

    assert finding.verdict is Verdict.REBOOT
    assert finding.detail.startswith("mlx5_5 is ")


@pytest.mark.parametrize("rate", ["200 Gb/sec (4X HDR)", "", "garbage", "1.2.3 Gb/sec"])
def test_a_port_slower_than_the_others_is_a_warning(bare_node: NodeRoot, rate: str) -> None:
    _add_ports(bare_node)
    _set_port(bare_node, 7, rate=rate)

    (finding,) = _rdma(bare_node)

    assert finding.verdict is Verdict.WARN
    assert "of 400 Gb/s" in finding.detail


@pytest.mark.parametrize(
    ("downs", "verdict", "of_job"), [(1, Verdict.WARN, False), (3, Verdict.REBOOT, True)]
)
def test_a_port_that_went_down_while_the_job_ran(
    bare_node: NodeRoot, downs: int, verdict: Verdict, of_job: bool
) -> None:
    _add_ports(bare_node)
    _set_port(bare_node, 2, downs=10)
    prolog = evidence_of(bare_node, machine_type="a3-ultragpu-8g")
    assert run_check("rdma", prolog) == []
    _set_port(bare_node, 2, downs=10 + downs)

    epilog = evidence_of(bare_node, Context.EPILOG, machine_type="a3-ultragpu-8g", before=prolog)
    (finding,) = run_check("rdma", epilog)

    assert (finding.verdict, finding.of_job) == (verdict, of_job)
    assert f"went down {downs} times" in finding.detail


def test_a_counter_that_began_anew_or_cannot_be_read_is_no_fault(bare_node: NodeRoot) -> None:
    _add_ports(bare_node)
    _set_port(bare_node, 2, downs=10)
    prolog = evidence_of(bare_node, machine_type="a3-ultragpu-8g")
    run_check("rdma", prolog)
    _set_port(bare_node, 2, downs="garbage")

    epilog = evidence_of(bare_node, Context.EPILOG, machine_type="a3-ultragpu-8g", before=prolog)

    assert run_check("rdma", epilog) == []

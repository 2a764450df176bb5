"""Networks, subnetworks and reservations of the project."""

from __future__ import annotations

from slurm_hooks.sandbox.emulator.http import shapes
from slurm_hooks.sandbox.emulator.http.dispatch import LIST_PARAMETERS, ApiCall, ApiRoute
from slurm_hooks.sandbox.emulator.http.instance_shapes import EPOCH, stable_id
from slurm_hooks.sandbox.emulator.http.listing import Frame, plain_list
from slurm_hooks.sandbox.emulator.http.paging import Listable
from slurm_hooks.sandbox.emulator.identifiers import fingerprint
from slurm_hooks.sandbox.emulator.problems import not_found
from slurm_hooks.sandbox.emulator.project import Network, Reservation, Subnetwork
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.world import World


def _network_shape(world: World, item: Network) -> Json:
    subnetworks = [
        shapes.link(world, f"regions/{one.region}/subnetworks/{one.name}")
        for one in world.project.subnetworks.values()
        if one.network == item.name
    ]
    return shapes.without_unset(
        {
            "kind": "compute#network",
            "id": str(stable_id(item.name)),
            "creationTimestamp": EPOCH,
            "name": item.name,
            "selfLink": shapes.link(world, f"global/networks/{item.name}"),
            "autoCreateSubnetworks": item.auto_create_subnetworks,
            "subnetworks": subnetworks or None,
            "routingConfig": {"routingMode": "REGIONAL"},
            "mtu": 1460,
            "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
        }
    )


def _network(world: World, call: ApiCall) -> Json:
    found = world.project.networks.get(call.names["name"])
    if found is None:
        raise not_found(world.path(f"global/networks/{call.names['name']}"))
    return _network_shape(world, found)


def _networks(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#networkList", "global/networks")
    items = [Listable(one, one.name) for one in world.project.networks.values()]
    return plain_list(world, call.query, frame, items, lambda one: _network_shape(world, one))


def _subnetwork_shape(world: World, item: Subnetwork) -> Json:
    return {
        "kind": "compute#subnetwork",
        "id": str(stable_id(f"{item.region}/{item.name}")),
        "creationTimestamp": EPOCH,
        "name": item.name,
        "network": shapes.link(world, f"global/networks/{item.network}"),
        "ipCidrRange": item.ip_cidr_range,
        "gatewayAddress": f"{item.ip_cidr_range.rpartition('.')[0]}.1",
        "region": shapes.link(world, f"regions/{item.region}"),
        "selfLink": shapes.link(world, f"regions/{item.region}/subnetworks/{item.name}"),
        "privateIpGoogleAccess": False,
        "fingerprint": fingerprint([item.name, item.network]),
        "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
        "purpose": "PRIVATE",
        "stackType": "IPV4_ONLY",
    }


def _subnetwork(world: World, call: ApiCall) -> Json:
    region, name = call.scope.name, call.names["name"]
    found = world.project.subnetworks.get((region, name))
    if found is None:
        raise not_found(world.path(f"regions/{region}/subnetworks/{name}"))
    return _subnetwork_shape(world, found)


def _subnetworks(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#subnetworkList", f"{call.scope}/subnetworks")
    items = [
        Listable(one, one.name)
        for one in world.project.subnetworks.values()
        if one.region == call.scope.name
    ]
    return plain_list(world, call.query, frame, items, lambda one: _subnetwork_shape(world, one))


def _reservation_shape(world: World, item: Reservation) -> Json:
    return {
        "kind": "compute#reservation",
        "id": str(stable_id(f"{item.zone}/{item.name}")),
        "creationTimestamp": EPOCH,
        "selfLink": shapes.link(world, f"zones/{item.zone}/reservations/{item.name}"),
        "zone": shapes.link(world, f"zones/{item.zone}"),
        "name": item.name,
        "specificReservation": {
            "instanceProperties": {"machineType": item.machine_type},
            "count": str(item.count),
            "assuredCount": str(item.count),
            "inUseCount": str(item.in_use_count),
        },
        "specificReservationRequired": item.specific_reservation_required,
        "status": item.status,
        "shareSettings": {"shareType": "LOCAL"},
    }


def _reservation(world: World, call: ApiCall) -> Json:
    zone, name = call.scope.name, call.names["name"]
    found = world.project.reservations.get((zone, name))
    if found is None:
        raise not_found(world.path(f"zones/{zone}/reservations/{name}"))
    return _reservation_shape(world, found)


def _reservations(world: World, call: ApiCall) -> Json:
    frame = Frame("compute#reservationList", f"{call.scope}/reservations")
    items = [
        Listable(one, one.name)
        for one in world.project.reservations.values()
        if one.zone == call.scope.name
    ]
    return plain_list(world, call.query, frame, items, lambda one: _reservation_shape(world, one))


GLOBAL_NETWORKS = (
    ApiRoute("GET", "networks", _networks, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "networks/{name}", _network),
)
REGIONAL_NETWORKS = (
    ApiRoute("GET", "subnetworks", _subnetworks, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "subnetworks/{name}", _subnetwork),
)
ZONAL_RESERVATIONS = (
    ApiRoute("GET", "reservations", _reservations, "", LIST_PARAMETERS, "lists"),
    ApiRoute("GET", "reservations/{name}", _reservation),
)

"""The gcloud commands that grant or mend what is missing, as arguments."""

from __future__ import annotations

from slurm_hooks.prerequisites.facts import QuotaName, ZonalName

Command = tuple[str, ...]
UNKNOWN_CALLER = "user:YOUR-ADDRESS"
"""Stands for the caller's own member where it could not be found out."""
_SUBNETWORK_RANGE = "10.64.0.0/20"


def last(path: str) -> str:
    """The name at the end of a path."""
    return path.rpartition("/")[2]


def part(path: str, collection: str) -> str:
    """What follows a collection in a path: `part("projects/p/zones/z", "zones")` is `z`."""
    words = path.split("/")
    return words[words.index(collection) + 1] if collection in words else ""


def grant(project: str, member: str, role: str) -> Command:
    """Give a member a role on a project."""
    return (
        *("gcloud", "projects", "add-iam-policy-binding", project),
        *(f"--member={member or UNKNOWN_CALLER}", f"--role={role}", "--condition=None"),
    )


def grant_on_account(project: str, email: str, member: str, role: str) -> Command:
    """Give a member a role on a service account."""
    return (
        *("gcloud", "iam", "service-accounts", "add-iam-policy-binding", email),
        *(f"--member={member or UNKNOWN_CALLER}", f"--role={role}", f"--project={project}"),
    )


def grant_on_secret(secret: str, member: str, role: str) -> Command:
    """Give a member a role on a secret."""
    return (
        *("gcloud", "secrets", "add-iam-policy-binding", last(secret)),
        *(f"--member={member}", f"--role={role}", f"--project={part(secret, 'projects')}"),
    )


def create_account(project: str, email: str) -> Command:
    """Make a service account of the project."""
    name = email.partition("@")[0]
    return ("gcloud", "iam", "service-accounts", "create", name, f"--project={project}")


def enable(project: str, service: str) -> Command:
    """Enable an API."""
    return ("gcloud", "services", "enable", service, f"--project={project}")


def create_network(network: str, is_automatic: bool) -> Command:
    """Make a VPC network."""
    mode = "auto" if is_automatic else "custom"
    return (
        *("gcloud", "compute", "networks", "create", last(network)),
        *(f"--subnet-mode={mode}", f"--project={part(network, 'projects')}"),
    )


def create_subnetwork(subnetwork: str, network: str) -> Command:
    """Make a subnetwork; its range is an example."""
    return (
        *("gcloud", "compute", "networks", "subnets", "create", last(subnetwork)),
        *(f"--network={last(network)}", f"--region={part(subnetwork, 'regions')}"),
        *(f"--range={_SUBNETWORK_RANGE}", f"--project={part(subnetwork, 'projects')}"),
    )


def list_images(image: str) -> Command:
    """Show the images that could be named instead."""
    project = part(image, "projects")
    return ("gcloud", "compute", "images", "list", f"--project={project}", "--no-standard-images")


def restore_image(image: str) -> Command:
    """Take an image's deprecation back."""
    return (
        *("gcloud", "compute", "images", "deprecate", last(image)),
        *("--state=ACTIVE", f"--project={part(image, 'projects')}"),
    )


def list_zones_with(project: str, collection: str, name: ZonalName) -> Command:
    """Show the zones that have a type; `collection` is as gcloud names it, e.g. `disk-types`."""
    return (
        *("gcloud", "compute", collection, "list", f"--filter=name={name.name}"),
        *("--format=value(zone)", f"--project={project}"),
    )


def quota_id(name: QuotaName, region: str) -> str:
    """What Cloud Quotas calls a quota of Compute Engine."""
    place = "per-project-region" if region else "per-project"
    return f"{name.metric.replace('_', '-')}-{place}"


def raise_quota(project: str, region: str, name: QuotaName, value: int) -> Command:
    """Ask for a higher quota."""
    pairs = {"region": region, "gpu_family": name.gpu_family}
    dimensions = ",".join(f"{key}={value}" for key, value in pairs.items() if value)
    return (
        *("gcloud", "beta", "quotas", "preferences", "create"),
        *(f"--quota-id={quota_id(name, region)}", "--service=compute.googleapis.com"),
        f"--preferred-value={value}",
        *((f"--dimensions={dimensions}",) if dimensions else ()),
        f"--project={project}",
    )


def create_reservation(reservation: str, machine_type: str, count: int) -> Command:
    """Reserve VMs that only who names the reservation gets."""
    return (
        *("gcloud", "compute", "reservations", "create", reservation_name(reservation)),
        *(f"--zone={part(reservation, 'zones')}", f"--machine-type={machine_type}"),
        *(f"--vm-count={count}", "--require-specific-reservation"),
        f"--project={part(reservation, 'projects')}",
    )


def resize_reservation(reservation: str, count: int) -> Command:
    """Make a reservation larger."""
    return (
        *("gcloud", "compute", "reservations", "update", reservation_name(reservation)),
        *(f"--zone={part(reservation, 'zones')}", f"--vm-count={count}"),
        f"--project={part(reservation, 'projects')}",
    )


def reservation_name(reservation: str) -> str:
    """The name of a reservation, also where a block of it is named."""
    return part(reservation, "reservations")


def create_filestore(instance: str, network: str) -> Command:
    """Make a Filestore instance of the smallest size."""
    return (
        *("gcloud", "filestore", "instances", "create", last(instance)),
        *(f"--location={part(instance, 'locations')}", "--tier=BASIC_HDD"),
        *("--file-share=name=share,capacity=1TiB", f"--network=name={network}"),
        f"--project={part(instance, 'projects')}",
    )


def create_lustre(instance: str, network: str) -> Command:
    """Make a Lustre instance of the smallest size."""
    return (
        *("gcloud", "lustre", "instances", "create", last(instance)),
        *(f"--location={part(instance, 'locations')}", "--filesystem=lustre"),
        *("--capacity-gib=18000", "--per-unit-storage-throughput=1000", f"--network={network}"),
        f"--project={part(instance, 'projects')}",
    )


def describe_file_system(service: str, instance: str) -> Command:
    """Show how a `filestore` or `lustre` instance stands."""
    return (
        *("gcloud", service, "instances", "describe", last(instance)),
        *(f"--location={part(instance, 'locations')}", f"--project={part(instance, 'projects')}"),
    )


def create_secret(version: str, key_file: str) -> Command:
    """Make a secret from the key of the controller."""
    return (
        *("gcloud", "secrets", "create", part(version, "secrets")),
        *("--replication-policy=automatic", f"--data-file={key_file}"),
        f"--project={part(version, 'projects')}",
    )


def add_secret_version(version: str, key_file: str) -> Command:
    """Add a version to a secret."""
    return (
        *("gcloud", "secrets", "versions", "add", part(version, "secrets")),
        *(f"--data-file={key_file}", f"--project={part(version, 'projects')}"),
    )


def enable_secret_version(version: str) -> Command:
    """Enable a disabled version of a secret."""
    return (
        *("gcloud", "secrets", "versions", "enable", last(version)),
        *(f"--secret={part(version, 'secrets')}", f"--project={part(version, 'projects')}"),
    )

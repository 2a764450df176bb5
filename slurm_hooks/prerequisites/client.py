"""What the check asks of Google Cloud: reads alone, one thing at a time.

Each method raises ComputeError when it gets no answer, GONE where the thing does not exist. Names
are partial URLs, as the cluster file has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from slurm_hooks.prerequisites.facts import (
    FileSystem,
    Image,
    MachineType,
    Network,
    Policy,
    ProjectIdentity,
    Quota,
    QuotaName,
    Reservation,
    SecretVersion,
    Subnetwork,
    ZonalName,
)


class ProjectClient(Protocol):
    """Reads one project."""

    @property
    def project(self) -> str:
        """The project's id."""

    def caller(self) -> str:
        """Who asks, as policies name members; empty when that is not to be found out."""

    def identity(self) -> ProjectIdentity:
        """The project's number and parent."""

    def parent_of(self, folder: str) -> str:
        """What a folder (`folders/1`) lies in."""

    def policy(self, resource: str) -> Policy:
        """The policy of the project (`projects/P`), a folder or an organisation."""

    def permissions(self, asked: Sequence[str]) -> frozenset[str]:
        """Those of these permissions that the caller has on the project."""

    def account_policy(self, email: str) -> Policy:
        """The policy on a service account."""

    def account_permissions(self, email: str, asked: Sequence[str]) -> frozenset[str]:
        """Those of these permissions that the caller has on a service account."""

    def services(self) -> frozenset[str]:
        """The APIs that are enabled, e.g. `compute.googleapis.com`."""

    def network(self, name: str) -> Network:
        """A VPC network."""

    def subnetwork(self, name: str) -> Subnetwork:
        """A subnetwork."""

    def image(self, name: str) -> Image:
        """An image, or the one that a family stands for now."""

    def machine_type(self, name: ZonalName) -> MachineType:
        """A machine type."""

    def require_type(self, collection: str, name: ZonalName) -> bool:
        """True when a zone has one of its `diskTypes` or `acceleratorTypes`."""

    def quotas(self, region: str) -> Mapping[QuotaName, Quota]:
        """The quotas that a region lists; those of the whole project for an empty region."""

    def quota(self, region: str, name: QuotaName) -> Quota:
        """A quota by Cloud Quotas, which knows those too that regions do not list, but no use."""

    def reservation(self, name: str) -> Reservation:
        """A reservation."""

    def filestore(self, name: str) -> FileSystem:
        """A Filestore instance."""

    def lustre(self, name: str) -> FileSystem:
        """A Lustre instance."""

    def secret_version(self, name: str) -> SecretVersion:
        """A version of a secret, without what it holds."""

    def secret_policy(self, secret: str) -> Policy:
        """The policy on a secret (`projects/P/secrets/S`)."""

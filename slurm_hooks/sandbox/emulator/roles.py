"""What the roles allow that the emulator knows: by patterns of permissions.

Only the permissions that matter here are told apart. Source: Google's pages of roles, November
2026; a role that is not listed allows nothing, and a custom one neither.
"""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase

_READS = ("*.get", "*.list")
_NOT_FOR_EDITORS = (
    "resourcemanager.projects.setIamPolicy",
    "iam.serviceAccounts.setIamPolicy",
    "secretmanager.versions.access",
)
_INSTANCE_ADMIN = (
    "compute.acceleratorTypes.*",
    "compute.autoscalers.*",
    "compute.diskTypes.*",
    "compute.disks.*",
    "compute.globalOperations.*",
    "compute.images.get",
    "compute.images.getFromFamily",
    "compute.images.list",
    "compute.images.useReadOnly",
    "compute.instanceGroupManagers.*",
    "compute.instanceGroups.*",
    "compute.instanceTemplates.*",
    "compute.instances.*",
    "compute.machineTypes.*",
    "compute.networks.get",
    "compute.networks.list",
    "compute.networks.use",
    "compute.networks.useExternalIp",
    "compute.projects.get",
    "compute.regionOperations.*",
    "compute.regions.*",
    "compute.reservations.get",
    "compute.reservations.list",
    "compute.resourcePolicies.*",
    "compute.subnetworks.get",
    "compute.subnetworks.list",
    "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp",
    "compute.zoneOperations.*",
    "compute.zones.*",
    "resourcemanager.projects.get",
    "serviceusage.services.get",
    "serviceusage.services.list",
)
_PATTERNS: dict[str, tuple[str, ...]] = {
    "roles/owner": ("*",),
    "roles/editor": ("*",),
    "roles/viewer": _READS,
    "roles/browser": ("resourcemanager.projects.get", "resourcemanager.projects.getIamPolicy"),
    "roles/cloudquotas.viewer": ("cloudquotas.quotas.get",),
    "roles/compute.admin": ("compute.*", "resourcemanager.projects.get", "serviceusage.services.*"),
    "roles/compute.instanceAdmin.v1": _INSTANCE_ADMIN,
    "roles/compute.instanceGroupManagerServiceAgent": (
        *_INSTANCE_ADMIN,
        "iam.serviceAccounts.actAs",
    ),
    "roles/compute.viewer": ("compute.*.get", "compute.*.list", "compute.images.getFromFamily"),
    "roles/compute.networkViewer": ("compute.networks.*", "compute.subnetworks.*"),
    "roles/iam.securityReviewer": ("*.getIamPolicy", "*.list"),
    "roles/iam.serviceAccountUser": (
        "iam.serviceAccounts.actAs",
        "iam.serviceAccounts.get",
        "iam.serviceAccounts.list",
        "resourcemanager.projects.get",
    ),
    "roles/iam.serviceAccountViewer": (
        "iam.serviceAccounts.get",
        "iam.serviceAccounts.getIamPolicy",
        "iam.serviceAccounts.list",
    ),
    "roles/serviceusage.serviceUsageViewer": (
        "serviceusage.services.get",
        "serviceusage.services.list",
    ),
    "roles/file.viewer": ("file.instances.get", "file.instances.list"),
    "roles/lustre.viewer": ("lustre.instances.get", "lustre.instances.list"),
    "roles/secretmanager.viewer": (
        "secretmanager.secrets.get",
        "secretmanager.secrets.getIamPolicy",
        "secretmanager.secrets.list",
        "secretmanager.versions.get",
        "secretmanager.versions.list",
    ),
    "roles/secretmanager.secretAccessor": ("secretmanager.versions.access",),
}


@functools.cache
def allows(role: str, permission: str) -> bool:
    """Whether a role allows something, e.g. `compute.instances.create`."""
    if role == "roles/editor" and permission in _NOT_FOR_EDITORS:
        return False
    return any(fnmatchcase(permission, pattern) for pattern in _PATTERNS.get(role, ()))

"""Google's own clients of the services beside Compute Engine, by REST, before an emulator."""

from __future__ import annotations

from typing import Any

import google.auth.credentials
from google.cloud import (
    cloudquotas_v1,
    filestore_v1,
    lustre_v1,
    resourcemanager_v3,
    secretmanager_v1,
    service_usage_v1,
)

CLIENTS: dict[str, tuple[Any, str]] = {
    "projects": (resourcemanager_v3.ProjectsClient, ""),
    "services": (service_usage_v1.ServiceUsageClient, ""),
    "filestores": (filestore_v1.CloudFilestoreManagerClient, ""),
    "lustres": (lustre_v1.LustreClient, "/lustre"),
    "quotas": (cloudquotas_v1.CloudQuotasClient, ""),
    "secrets": (secretmanager_v1.SecretManagerServiceClient, ""),
}
"""The class of each client, and what stands before its paths in the emulator."""


def client_of(name: str, url: str) -> Any:
    """A client by its name in CLIENTS."""
    kind, prefix = CLIENTS[name]
    anonymous: Any = google.auth.credentials.AnonymousCredentials
    return kind(
        credentials=anonymous(),
        transport="rest",
        client_options={"api_endpoint": f"{url}{prefix}"},
    )

"""A ProjectClient on Google's services, by plain JSON.

Seven services are asked for a few things each. Their libraries would bring gRPC and fifty
megabytes to every controller, for reads of which none is repeated; a session of google-auth, which
is there already, does the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.compute.errors import ComputeError, ErrorKind
from slurm_hooks.compute.google_session import GoogleSession, Place
from slurm_hooks.prerequisites import answers
from slurm_hooks.prerequisites.answers import Json
from slurm_hooks.prerequisites.client import ProjectClient
from slurm_hooks.prerequisites.commands import quota_id
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

CLOUD_QUOTAS = Place("cloudquotas.googleapis.com")
COMPUTE = Place("compute.googleapis.com")
FILESTORE = Place("file.googleapis.com")
IAM = Place("iam.googleapis.com")
LUSTRE = Place("lustre.googleapis.com", "/lustre")
OAUTH = Place("oauth2.googleapis.com")
RESOURCE_MANAGER = Place("cloudresourcemanager.googleapis.com")
SECRET_MANAGER = Place("secretmanager.googleapis.com")
SERVICE_USAGE = Place("serviceusage.googleapis.com")
_QUOTAS_OF_COMPUTE = "services/compute.googleapis.com/quotaInfos"
_MOST_PERMISSIONS = 100
_LARGEST_PAGE = "200"
_WITH_CONDITIONS = {"options": {"requestedPolicyVersion": 3}}
_OWN_ACCOUNT = re.compile(r"[^@]+@(?P<project>[^@]+)\.iam\.gserviceaccount\.com")
_ACCOUNT_OF_SERVICE = ".gserviceaccount.com"


def project_client(values: Mapping[str, str], cluster: Cluster) -> ProjectClient:
    """The client for a cluster, by the settings `Project`, `ApiEndpoint`, `ApiCredentials`.

    Raises ValueError for settings that cannot be used.
    """
    session = GoogleSession(values["ApiEndpoint"], values["ApiCredentials"])
    return GoogleProject(values["Project"] or cluster.project, session)


class GoogleProject:
    """A ProjectClient for one project."""

    def __init__(self, project: str, session: GoogleSession) -> None:
        self._project = project
        self._session = session

    @property
    def project(self) -> str:
        """See ProjectClient."""
        return self._project

    def caller(self) -> str:
        """See ProjectClient. A VM learns its account with its first token, and a person is known
        to Google by the token."""
        email = self._session.service_account()
        if not email:
            token = self._session.access_token()
            email = self._session.service_account() or self._owner_of(token)
        kind = "serviceAccount" if email.endswith(_ACCOUNT_OF_SERVICE) else "user"
        return f"{kind}:{email}" if email else ""

    def _owner_of(self, token: str) -> str:
        answer = self._session.get(OAUTH, "/tokeninfo", {"access_token": token})
        return str(answer.get("email", ""))

    def identity(self) -> ProjectIdentity:
        """See ProjectClient."""
        body = self._session.get(RESOURCE_MANAGER, f"/v3/projects/{self._project}")
        return answers.identity_from(body)

    def parent_of(self, folder: str) -> str:
        """See ProjectClient."""
        return str(self._session.get(RESOURCE_MANAGER, f"/v3/{folder}").get("parent", ""))

    def policy(self, resource: str) -> Policy:
        """See ProjectClient."""
        path = f"/v3/{resource}:getIamPolicy"
        return answers.policy_from(self._session.post(RESOURCE_MANAGER, path, _WITH_CONDITIONS))

    def permissions(self, asked: Sequence[str]) -> frozenset[str]:
        """See ProjectClient."""
        path = f"/v3/projects/{self._project}:testIamPermissions"
        return self._tested(RESOURCE_MANAGER, path, asked)

    def account_policy(self, email: str) -> Policy:
        """See ProjectClient."""
        path = f"{self._account(email)}:getIamPolicy"
        return answers.policy_from(self._session.post(IAM, path, _WITH_CONDITIONS))

    def account_permissions(self, email: str, asked: Sequence[str]) -> frozenset[str]:
        """See ProjectClient."""
        return self._tested(IAM, f"{self._account(email)}:testIamPermissions", asked)

    def services(self) -> frozenset[str]:
        """See ProjectClient."""
        found: set[str] = set()
        query = {"filter": "state:ENABLED", "pageSize": _LARGEST_PAGE}
        path = f"/v1/projects/{self._project}/services"
        while True:
            page = self._session.get(SERVICE_USAGE, path, query)
            found.update(one["config"]["name"] for one in page.get("services", []))
            token = str(page.get("nextPageToken", ""))
            if not token:
                return frozenset(found)
            query = {**query, "pageToken": token}

    def network(self, name: str) -> Network:
        """See ProjectClient."""
        return answers.network_from(self._compute(name))

    def subnetwork(self, name: str) -> Subnetwork:
        """See ProjectClient."""
        return answers.subnetwork_from(self._compute(name))

    def image(self, name: str) -> Image:
        """See ProjectClient."""
        return answers.image_from(self._compute(name))

    def machine_type(self, name: ZonalName) -> MachineType:
        """See ProjectClient."""
        return answers.machine_type_from(self._of_zone("machineTypes", name))

    def require_type(self, collection: str, name: ZonalName) -> bool:
        """See ProjectClient."""
        self._of_zone(collection, name)
        return True

    def quotas(self, region: str) -> Mapping[QuotaName, Quota]:
        """See ProjectClient."""
        place = f"/regions/{region}" if region else ""
        return answers.quotas_from(self._compute(f"projects/{self._project}{place}"))

    def quota(self, region: str, name: QuotaName) -> Quota:
        """See ProjectClient."""
        quota = quota_id(name, region)
        path = f"/v1/projects/{self._project}/locations/global/{_QUOTAS_OF_COMPUTE}/{quota}"
        body = self._session.get(CLOUD_QUOTAS, path)
        found = answers.quota_from(body, region, name.gpu_family)
        if found is None:
            raise ComputeError(ErrorKind.GONE, "NOT_FOUND", f"{name} does not tell of {region}")
        return found

    def reservation(self, name: str) -> Reservation:
        """See ProjectClient."""
        return answers.reservation_from(self._compute(name))

    def filestore(self, name: str) -> FileSystem:
        """See ProjectClient."""
        return answers.filestore_from(self._session.get(FILESTORE, f"/v1/{name}"))

    def lustre(self, name: str) -> FileSystem:
        """See ProjectClient."""
        return answers.lustre_from(self._session.get(LUSTRE, f"/v1/{name}"))

    def secret_version(self, name: str) -> SecretVersion:
        """See ProjectClient."""
        return answers.secret_version_from(self._session.get(SECRET_MANAGER, f"/v1/{name}"))

    def secret_policy(self, secret: str) -> Policy:
        """See ProjectClient."""
        query = {"options.requestedPolicyVersion": "3"}
        body = self._session.get(SECRET_MANAGER, f"/v1/{secret}:getIamPolicy", query)
        return answers.policy_from(body)

    def _account(self, email: str) -> str:
        """An account may be another project's, which its address tells. The service's `-` for any
        project would answer 403 for an account that does not exist."""
        match = _OWN_ACCOUNT.fullmatch(email)
        project = match["project"] if match else self._project
        return f"/v1/projects/{project}/serviceAccounts/{email}"

    def _tested(self, place: Place, path: str, asked: Sequence[str]) -> frozenset[str]:
        found: set[str] = set()
        for start in range(0, len(asked), _MOST_PERMISSIONS):
            body = {"permissions": list(asked[start : start + _MOST_PERMISSIONS])}
            found.update(self._session.post(place, path, body).get("permissions", []))
        return frozenset(found)

    def _of_zone(self, collection: str, name: ZonalName) -> Json:
        path = f"projects/{self._project}/zones/{name.zone}/{collection}/{name.name}"
        return self._compute(path)

    def _compute(self, path: str) -> Json:
        """GET a resource. Raises TRANSIENT for `{}`, which would be read as one."""
        body = self._session.get(COMPUTE, f"/compute/v1/{path}")
        if "kind" not in body:
            raise ComputeError(ErrorKind.TRANSIENT, "unreadableAnswer", "no kind", 200)
        return body

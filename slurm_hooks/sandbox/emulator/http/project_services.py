"""Resource Manager, Service Usage and IAM of service accounts: who may do what in the project.

Setting a policy and enabling a service ask for no permission: whoever does it here is taken for
the owner who mends the project.
"""

from __future__ import annotations

from collections.abc import Callable

from slurm_hooks.sandbox.emulator.http.service_dispatch import (
    ServiceCall,
    ServiceError,
    ServiceRoute,
)
from slurm_hooks.sandbox.emulator.iam import VERSION_WITH_CONDITIONS, Policy, bindings_from
from slurm_hooks.sandbox.emulator.identifiers import utc_timestamp
from slurm_hooks.sandbox.emulator.project import (
    IAM,
    RESOURCE_MANAGER,
    SERVICE_USAGE,
    SERVICES,
    ServiceAccount,
)
from slurm_hooks.sandbox.emulator.records import Json
from slurm_hooks.sandbox.emulator.world import World

PolicyOf = Callable[[World, ServiceCall], Policy]
_PROJECT = "/projects/{project}"
_SERVICES = f"/v1{_PROJECT}/services"
_ACCOUNT = f"/v1{_PROJECT}/serviceAccounts/{{email}}"
_MOST_PERMISSIONS = 100
_PAGE_SIZE, _LARGEST_PAGE = 50, 200


def project_policy(world: World, call: ServiceCall) -> Policy:
    """The policy of the project."""
    return world.project.policy


def policy_to_json(policy: Policy, call: ServiceCall) -> Json:
    """A policy in the version that the call asks for, in its body or its query."""
    options = call.body.get("options") or {}
    in_query = call.query.get("options.requestedPolicyVersion", "1")
    asked = int(options.get("requestedPolicyVersion") or in_query)
    if asked not in (0, 1, VERSION_WITH_CONDITIONS):
        raise ServiceError(400, f"There is no policy version {asked}.")
    return policy.to_json(asked)


def set_policy(policy_of: PolicyOf) -> Callable[[World, ServiceCall], Json]:
    """A handler that replaces a policy unless it has changed since it was read."""

    def handler(world: World, call: ServiceCall) -> Json:
        policy, wanted = policy_of(world, call), call.body["policy"]
        if wanted.get("etag", policy.etag) != policy.etag:
            raise ServiceError(409, "The policy has changed since it was read.")
        bindings = bindings_from(wanted)
        has_condition = any(binding.condition for binding in bindings)
        if has_condition and wanted.get("version") != VERSION_WITH_CONDITIONS:
            raise ServiceError(400, "A policy with conditions must have version 3.")
        policy.replace(bindings)
        return policy.to_json(VERSION_WITH_CONDITIONS)

    return handler


def tested_permissions(world: World, call: ServiceCall, *policies: Policy) -> Json:
    """Those of the permissions asked for that the caller has; none is an empty answer."""
    asked = call.body.get("permissions", [])
    if not asked or len(asked) > _MOST_PERMISSIONS or any("*" in one for one in asked):
        raise ServiceError(400, f"Name 1 to {_MOST_PERMISSIONS} permissions, without wildcards.")
    found = [one for one in asked if world.project.allows(call.member, one, world.now, *policies)]
    return {"permissions": found} if found else {}


def _test_project(world: World, call: ServiceCall) -> Json:
    return tested_permissions(world, call)


def _get_project(world: World, call: ServiceCall) -> Json:
    call.require(world, "resourcemanager.projects.get", f"projects/{call.names['project']}")
    identifiers = world.identifiers
    parent = world.project.parent
    return {
        "name": f"projects/{identifiers.project_number}",
        **({"parent": parent} if parent else {}),
        "projectId": identifiers.project,
        "state": "ACTIVE",
        "displayName": identifiers.project,
        "createTime": utc_timestamp(world.now.replace(year=world.now.year - 1, day=1)),
    }


def _get_project_policy(world: World, call: ServiceCall) -> Json:
    resource = f"projects/{call.names['project']}"
    call.require(world, "resourcemanager.projects.getIamPolicy", resource)
    return policy_to_json(world.project.policy, call)


def _get_organization_policy(world: World, call: ServiceCall) -> Json:
    resource = f"organizations/{call.names['organization']}"
    above = world.project.policy.inherited()
    if resource != world.project.parent or not above.allows(
        call.member, "resourcemanager.organizations.getIamPolicy", world.now
    ):
        raise ServiceError(403, f"The caller does not have permission on {resource}.")
    return policy_to_json(above, call)


def _token_info(world: World, call: ServiceCall) -> Json:
    return {"email": call.member.partition(":")[2], "email_verified": "true", "expires_in": "3599"}


def _service(world: World, name: str) -> Json:
    parent = f"projects/{world.identifiers.project_number}"
    return {
        "name": f"{parent}/services/{name}",
        "parent": parent,
        "config": {"name": name},
        "state": "ENABLED" if name in world.project.enabled_services else "DISABLED",
    }


def _list_services(world: World, call: ServiceCall) -> Json:
    call.require(world, "serviceusage.services.list", f"projects/{call.names['project']}")
    wanted = call.query.get("filter", "")
    if wanted not in ("", "state:ENABLED", "state:DISABLED"):
        raise ServiceError(400, "The filter must be state:ENABLED or state:DISABLED.")
    size = int(call.query.get("pageSize") or _PAGE_SIZE)
    if size > _LARGEST_PAGE:
        raise ServiceError(400, f"The page size must not exceed {_LARGEST_PAGE}.")
    state = wanted.removeprefix("state:")
    found = [one for name in sorted(SERVICES) if (one := _service(world, name))["state"] == state]
    found = found if state else [_service(world, name) for name in sorted(SERVICES)]
    start = int(call.query.get("pageToken") or 0)
    answer: Json = {"services": found[start : start + size]} if found[start:] else {}
    more = start + size < len(found)
    return answer | ({"nextPageToken": str(start + size)} if more else {})


def _known_service(name: str) -> str:
    if name not in SERVICES:
        raise ServiceError(403, f"Not found or permission denied for service(s): {name}.")
    return name


def _get_service(world: World, call: ServiceCall) -> Json:
    call.require(world, "serviceusage.services.get", f"projects/{call.names['project']}")
    return _service(world, _known_service(call.names["service"]))


def _enable_service(world: World, call: ServiceCall) -> Json:
    name = _known_service(call.names["service"])
    world.project.enabled_services.add(name)
    return _done("EnableServiceResponse", {"service": _service(world, name)})


def _enable_services(world: World, call: ServiceCall) -> Json:
    names = [_known_service(str(name)) for name in call.body["serviceIds"]]
    world.project.enabled_services.update(names)
    services = [_service(world, name) for name in names]
    return _done("BatchEnableServicesResponse", {"services": services})


def _done(message: str, response: Json) -> Json:
    """An operation that was done at once."""
    kind = f"type.googleapis.com/google.api.serviceusage.v1.{message}"
    return {
        "name": "operations/acat.p2-emulated",
        "done": True,
        "response": {"@type": kind, **response},
    }


def _account(world: World, call: ServiceCall) -> ServiceAccount:
    email = call.names["email"]
    for account in world.project.service_accounts.values():
        if email in (account.email, str(account.unique_id)):
            return account
    if call.names["project"] == "-":
        raise ServiceError(403, f"Permission denied on {email}, or it does not exist.")
    raise ServiceError(404, f"Service account {email} does not exist.")


def _account_policy(world: World, call: ServiceCall) -> Policy:
    return _account(world, call).policy


def _get_account(world: World, call: ServiceCall) -> Json:
    account, project = _account(world, call), world.identifiers.project
    name = f"projects/{project}/serviceAccounts/{account.email}"
    call.require(world, "iam.serviceAccounts.get", name, account.policy)
    return {
        "name": name,
        "projectId": project,
        "uniqueId": str(account.unique_id),
        "email": account.email,
        "etag": account.policy.etag,
        "oauth2ClientId": str(account.unique_id),
    }


def _get_account_policy(world: World, call: ServiceCall) -> Json:
    account = _account(world, call)
    resource = f"projects/{world.identifiers.project}/serviceAccounts/{account.email}"
    call.require(world, "iam.serviceAccounts.getIamPolicy", resource, account.policy)
    return policy_to_json(account.policy, call)


def _test_account(world: World, call: ServiceCall) -> Json:
    return tested_permissions(world, call, _account(world, call).policy)


_OPTIONS = frozenset({"options", "resource"})
_VERSION = frozenset({"options.requestedPolicyVersion"})
_POLICY = frozenset({"policy", "updateMask", "resource"})
_PERMISSIONS = frozenset({"permissions", "resource"})
_LIST = frozenset({"filter", "pageSize", "pageToken"})


def _resource_manager(version: str) -> tuple[ServiceRoute, ...]:
    """gcloud changes policies through v1, whose methods for them are the same."""
    path = f"/{version}{_PROJECT}"
    return (
        ServiceRoute(
            RESOURCE_MANAGER, "POST", f"{path}:getIamPolicy", _get_project_policy, _OPTIONS
        ),
        ServiceRoute(
            RESOURCE_MANAGER, "POST", f"{path}:setIamPolicy", set_policy(project_policy), _POLICY
        ),
        ServiceRoute(
            RESOURCE_MANAGER, "POST", f"{path}:testIamPermissions", _test_project, _PERMISSIONS
        ),
    )


PROJECT_SERVICES = (
    *_resource_manager("v3"),
    *_resource_manager("v1"),
    ServiceRoute(RESOURCE_MANAGER, "GET", f"/v3{_PROJECT}", _get_project),
    ServiceRoute(
        RESOURCE_MANAGER,
        "POST",
        "/v3/organizations/{organization}:getIamPolicy",
        _get_organization_policy,
        _OPTIONS,
    ),
    ServiceRoute(
        IAM, "GET", "/tokeninfo", _token_info, parameters=frozenset({"access_token", "id_token"})
    ),
    ServiceRoute(SERVICE_USAGE, "GET", _SERVICES, _list_services, parameters=_LIST),
    ServiceRoute(SERVICE_USAGE, "GET", f"{_SERVICES}/{{service}}", _get_service),
    ServiceRoute(SERVICE_USAGE, "POST", f"{_SERVICES}/{{service}}:enable", _enable_service),
    ServiceRoute(
        SERVICE_USAGE,
        "POST",
        f"{_SERVICES}:batchEnable",
        _enable_services,
        frozenset({"serviceIds"}),
    ),
    ServiceRoute(IAM, "POST", f"{_ACCOUNT}:getIamPolicy", _get_account_policy, _OPTIONS, _VERSION),
    ServiceRoute(IAM, "POST", f"{_ACCOUNT}:setIamPolicy", set_policy(_account_policy), _POLICY),
    ServiceRoute(IAM, "POST", f"{_ACCOUNT}:testIamPermissions", _test_account, _PERMISSIONS),
    ServiceRoute(IAM, "GET", _ACCOUNT, _get_account),
)

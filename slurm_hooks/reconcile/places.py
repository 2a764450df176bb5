"""Places for resize requests: how many may be active in a region, and who gets the free ones.

Invariant: no more requests of ours are active or on their way in a region than the service
allows, and nobody overtakes one who waits there. Others of the project use places too, so the
service may refuse earlier; whoever it refused is then the one that all later ones wait behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from slurm_hooks.compute.model import Operation, RequestReference, ResizeRequest
from slurm_hooks.reconcile.actions import INSERT_REQUEST, subject_of_insertion
from slurm_hooks.reconcile.snapshot import Failure

MOST_ACTIVE_REQUESTS = 100
"""Active resize requests of a project in a region: the default of Compute Engine's quota
ACTIVE_RESIZE_REQUESTS, from the documentation of GKE, November 2026."""

KEPT_FOR_JOBS = 20
"""Places that nodes without a job leave free: a static pool that is being filled asks for each
node by itself, and would else keep every job from asking."""


class Places:
    """The places of all regions in one pass; they are taken in the order of the gangs."""

    def __init__(
        self,
        requests: Mapping[RequestReference, ResizeRequest],
        in_flight: Mapping[str, Operation],
    ) -> None:
        self._used = Counter(_regions(requests, in_flight))
        self._closed: dict[str, Failure | None] = {}

    def is_closed(self, region: str) -> bool:
        """Whether somebody waits there already, so that all later ones do."""
        return region in self._closed

    def refusal(self, region: str) -> Failure | None:
        """The answer of the service that closed the region; None where we counted ourselves."""
        return self._closed.get(region)

    def close(self, region: str, refusal: Failure | None = None) -> None:
        """Let all later ones wait."""
        self._closed.setdefault(region, refusal)

    def take(self, needed: Counter[str], *, for_job: bool) -> bool:
        """Take so many places in each region, all or none; without them the regions close."""
        limit = MOST_ACTIVE_REQUESTS if for_job else MOST_ACTIVE_REQUESTS - KEPT_FOR_JOBS
        full = [region for region, count in needed.items() if self._used[region] + count > limit]
        for region in full:
            self.close(region)
        if full or any(self.is_closed(region) for region in needed):
            return False
        self._used.update(needed)
        return True


def _regions(
    requests: Mapping[RequestReference, ResizeRequest], in_flight: Mapping[str, Operation]
) -> Iterator[str]:
    """The region of each active request, and of each one that is on its way and not listed yet."""
    for reference, request in requests.items():
        if request.state.is_active:
            yield reference.group.scope.region
    listed = {subject_of_insertion(reference) for reference in requests}
    for subject, operation in in_flight.items():
        if subject.startswith(INSERT_REQUEST) and subject not in listed:
            yield operation.scope.region

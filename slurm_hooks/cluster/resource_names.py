"""The forms that names of Google Cloud resources have in a cluster file.

Partial URLs (`projects/P/...`) are the canonical form; bare names and full URLs are accepted where
the managed service accepts them.
"""

from __future__ import annotations

import re

_PROJECT = r"projects/(?P<project>[a-z0-9][a-z0-9.:-]*)"
_NAME = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_API = re.compile(r"https://(?:www|compute)\.googleapis\.com/compute/[a-z0-9]+/")

CLUSTER_ID = re.compile(r"[a-z][a-z0-9]{0,9}")
POOL_ID = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
PARTITION_ID = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)")
ZONE = re.compile(r"(?P<region>[a-z]+-[a-z]+[0-9]+)-[a-z0-9]+")
CLUSTER = re.compile(
    rf"{_PROJECT}/locations/(?P<region>[a-z0-9-]+)/modelDevelopmentClusters/(?P<id>[^/]*)"
)
NETWORK = re.compile(rf"(?:{_PROJECT}/global/networks/)?(?P<name>{_NAME})")
SUBNETWORK = re.compile(
    rf"(?:{_PROJECT}/regions/(?P<region>[a-z0-9-]+)/subnetworks/)?(?P<name>{_NAME})"
)
STORAGE = re.compile(rf"{_PROJECT}/locations/(?P<zone>[a-z0-9-]+)/instances/(?P<name>{_NAME})")
SERVICE_ACCOUNT = re.compile(r"[a-z0-9.-]+@[a-z0-9.-]+")
RESERVATION = re.compile(
    rf"{_PROJECT}/zones/(?P<zone>[a-z0-9-]+)/reservations/{_NAME}"
    rf"(?:/reservationBlocks/{_NAME}(?:/reservationSubBlocks/{_NAME})?)?"
)
IMAGE = re.compile(rf"{_PROJECT}/global/images/(?:family/)?{_NAME}")

MAXIMUM_NAME_LENGTH = 63
"""Of a VM's name, and so of a node's (RFC 1035)."""


def partial_url(text: str) -> str:
    """A resource's partial URL: the full one without host and API version."""
    return _API.sub("", text, count=1)


def region_of(zone: str) -> str:
    """The region that a zone lies in; empty when the text is no zone."""
    match = ZONE.fullmatch(zone)
    return match.group("region") if match else ""


def location_region(location: str) -> str:
    """The region of a location, which is a zone or a region itself."""
    return region_of(location) or location


def project_of(*texts: str) -> str:
    """The project of the first text that names one; empty when none does."""
    matches = (re.match(_PROJECT + "/", partial_url(text)) for text in texts)
    return next((match.group("project") for match in matches if match), "")

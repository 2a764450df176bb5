"""What the VM's metadata server says, read with a deadline.

Source: the metadata server answers plain HTTP, and only with the header Metadata-Flavor.
"""

from __future__ import annotations

from slurm_hooks.health.host import Host

DEADLINE_SECONDS = 1.0
_LARGEST_BYTES = 64 * 1024


def read(host: Host, key: str) -> str | None:
    """The value of a key such as `instance/id`; "" where the server has no such key, None where it
    does not answer."""
    import http.client  # costs more than a healthy run has to spend
    from urllib.parse import urlsplit

    url = urlsplit(f"{host.metadata_url}/{key}")
    connection = http.client.HTTPConnection(
        url.hostname or "", url.port or 80, timeout=DEADLINE_SECONDS
    )
    try:
        target = f"{url.path}?{url.query}" if url.query else url.path
        connection.request("GET", target, headers={"Metadata-Flavor": "Google"})
        answer = connection.getresponse()
        text = answer.read(_LARGEST_BYTES).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if answer.status == http.client.NOT_FOUND:
        return ""
    return text if answer.status == http.client.OK else None

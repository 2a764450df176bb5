"""What holds for every test.

A suite that a shell starts in its background inherits an ignored SIGINT, and so would everything
that tests start and interrupt.

Workers get the longest work first: the modules that share a cluster between their tests, which stay
together on one worker.
"""

from __future__ import annotations

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in order, and keep those together that share a fixture of their module."""
    for item in items:
        if _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: not _shares_a_fixture(item))


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether a fixture of the test lives for its whole module."""
    if not isinstance(item, pytest.Function):
        return False
    found = item._fixtureinfo.name2fixturedefs.values()
    return any(definition.scope == "module" for each in found for definition in each)

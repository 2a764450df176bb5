"""What every body of a Flex-start template or VM says, as the service demands it."""

from __future__ import annotations

from typing import Any

FLEX_START: dict[str, Any] = {
    "scheduling": {
        "provisioningModel": "FLEX_START",
        "maxRunDuration": {"seconds": "86400"},
        "instanceTerminationAction": "DELETE",
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
    },
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
}

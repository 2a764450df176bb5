"""What holds for every test.

A suite that a shell starts in its background inherits an ignored SIGINT, and so would everything
that tests start and interrupt.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

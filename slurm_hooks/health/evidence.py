"""What a check may look at: the node, the job, the policy, the driver, and how things were before.

One for each run, in the process that does the probing. Everything slow is read when a check first
asks for it, so that a hang is known to be that check's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from slurm_hooks.health.driver.model import DriverError, Gpu
from slurm_hooks.health.host import Host
from slurm_hooks.health.model import Context, JobOnNode
from slurm_hooks.health.policy import ExpectedHardware, HealthPolicy

if TYPE_CHECKING:
    from slurm_hooks.health.driver.protocol import Driver

_LAST_WORDS_SECONDS = 0.5


class Evidence:
    """One health run's material.

    `now` is aware and in UTC. `counters` are those of this run, to be kept as the next baseline;
    `baseline` those that the job's Prolog kept, by the same keys, and `baseline_time` when: both
    are empty without one. A check writes a counter by `note` and gets its growth back.

    `cleared_time` is when a person last said that what was logged before is dealt with.
    `driver_is_judged` says that the check `driver` has run: then its finding stands for all that a
    driver which does not open would bring. `deadline` is when the run is over, by the monotonic
    clock: what waits asks `seconds_left` first, since a run that is cut off passes for a driver
    that hangs. `may_act` says whether a check may mend or end something: a person who only looks
    changes nothing.
    """

    def __init__(
        self,
        context: Context,
        host: Host,
        policy: HealthPolicy,
        expected: ExpectedHardware,
        driver: Driver,
        now: datetime,
        job: JobOnNode | None = None,
        baseline: Mapping[str, float] | None = None,
        baseline_time: datetime | None = None,
        cleared_time: datetime | None = None,
        deadline: float | None = None,
        may_act: bool = True,
    ) -> None:
        self.context = context
        self.host = host
        self.policy = policy
        self.expected = expected
        self.driver = driver
        self.now = now
        self.job = job
        self.baseline = baseline or {}
        self.baseline_time = baseline_time
        self.cleared_time = cleared_time
        self.deadline = deadline
        self.may_act = may_act
        self.counters: dict[str, float] = {}
        self.driver_is_judged = False
        self._gpus: tuple[Gpu, ...] | None = None
        self._is_open = False
        self._driver_error: DriverError | None = None

    @property
    def expects_gpus(self) -> bool:
        """Whether this node must have GPUs. A job that has some says so, too."""
        return bool(self.expected.gpus) or self.has_job_gpus

    def driver_error(self) -> DriverError | None:
        """Open the driver, once; why it does not open, or None."""
        if not self._is_open and self._driver_error is None:
            try:
                self.driver.open()
                self._is_open = True
            except DriverError as error:
                self._driver_error = error
        return self._driver_error

    def gpus(self) -> tuple[Gpu, ...]:
        """Every GPU that can be attached to, none on a node without GPUs. One that cannot is the
        business of the check `gpu_lost`, so it is left out here.

        Raises DriverError when the driver does not open and nothing has said so yet.
        """
        if not self.expects_gpus:
            return ()
        error = self.driver_error()
        if error is not None:
            if self.driver_is_judged:
                return ()
            raise error
        if self._gpus is None:
            self._gpus = tuple(_attached(self.driver))
        return self._gpus

    def seconds_left(self, wanted: float) -> float:
        """As many seconds as wanted, or as the run still has to spend beside its last words."""
        if self.deadline is None:
            return wanted
        return max(0.0, min(wanted, self.deadline - _LAST_WORDS_SECONDS - time.monotonic()))

    @property
    def has_job_gpus(self) -> bool:
        """Whether there is a job and it has GPUs: what is wrong with the driver hits it."""
        return self.job is not None and bool(self.job.gpus)

    def is_of_job(self, gpu: Gpu) -> bool:
        """Whether the job at hand has the GPU."""
        return self.job is not None and gpu.minor in self.job.gpus

    def note(self, key: str, value: float) -> float | None:
        """Keep a counter's present value, and say how much it has grown since the Prolog.

        None without a baseline, or when the counter began anew (driver reloaded).
        """
        self.counters[key] = value
        before = self.baseline.get(key)
        return value - before if before is not None and value >= before else None


def _attached(driver: Driver) -> list[Gpu]:
    found = []
    for index in range(driver.count()):
        try:
            found.append(driver.gpu(index))
        except DriverError:
            continue
    return found

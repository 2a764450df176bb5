"""What `slurm-hooks check` knows to be missing, as reasons not to begin."""

from __future__ import annotations

import shlex

from slurm_hooks.apply.place import Place
from slurm_hooks.apply.plan import Obstacle
from slurm_hooks.cluster.topology import Cluster
from slurm_hooks.prerequisites.google_project import project_client
from slurm_hooks.prerequisites.model import Outcome
from slurm_hooks.prerequisites.run import check_prerequisites


def missing_prerequisites(place: Place, cluster: Cluster) -> tuple[Obstacle, ...]:
    """What is known to be missing. What could not be confirmed, and warnings, forbid nothing."""
    findings = check_prerequisites(cluster, project_client(place.values, cluster))
    return tuple(
        Obstacle(
            f"{finding.check}: {finding.subject}: {finding.detail}",
            shlex.join(finding.fix) or "see slurm-hooks check",
        )
        for finding in findings
        if finding.outcome is Outcome.FAIL
    )

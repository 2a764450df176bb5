"""Node health: what is looked at before and after every job and while a node is idle.

Runs on the compute node as root, from Slurm's Prolog, Epilog and HealthCheckProgram. Knows nothing
of the controller and never touches the cloud.
"""

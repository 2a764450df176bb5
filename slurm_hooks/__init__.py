"""Slurm on Compute Engine, with nobody woken at night: hooks, daemon and health checks.

Kept empty on purpose: the hook programs import this package, and each import costs them time.
"""

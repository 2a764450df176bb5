"""Applying a cluster file, and deleting what came of it: plans that are pure, steps that repeat."""

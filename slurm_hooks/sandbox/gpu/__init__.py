"""Pretended GPUs: a driver library for machines without one, and the state it answers from."""

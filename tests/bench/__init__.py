"""Benchmarks: `make bench`. Ratios measured side by side in one run; nothing is asserted."""

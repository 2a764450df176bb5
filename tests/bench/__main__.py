"""Run all benchmarks and print their tables."""

from __future__ import annotations

from rich.console import Console

from tests.bench import decisions, hooks, node_health, passes, repairs

SIZES = (1_000, 10_000)


def main() -> None:
    """Measure hooks, node health and decisions, passes over both sizes, then a repair in a box."""
    console = Console()
    console.print(hooks.measure())
    console.print(node_health.measure())
    console.print(decisions.measure())
    console.print(passes.resume_table())
    results = []
    for nodes in SIZES:
        console.print(f"filling the emulator with {nodes} VMs")
        results.append(passes.measure(nodes))
    console.print(passes.table(results))
    console.print(repairs.measure())


if __name__ == "__main__":
    main()

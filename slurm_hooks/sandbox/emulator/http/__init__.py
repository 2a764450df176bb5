"""The REST surface: routes, JSON shapes, paging and filters over the engine."""

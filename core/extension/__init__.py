"""How plugins come in: hooks, manager, registries, backends and devices."""

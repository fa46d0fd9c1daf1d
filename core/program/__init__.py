"""Programs: a graph as a flat list of instructions."""

"""What needs nothing of the project: locks, threads, random streams, element types, shapes, sums, windows, environment."""

"""What depends on nothing else of the project: locks, threads, thresholds, random streams, element types, shapes, sums, windows.

Belongs here: anything that several packages use and that is not about networks.
It must not import any other package of the kernel but ``storage``.
"""

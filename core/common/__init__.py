"""What needs nothing of the project: locks, threads, thresholds, random streams, element types, shapes, sums, windows.

Anything goes in that several rooms or parts use and that is not about networks.
It must not know any other room but the one of files.
"""

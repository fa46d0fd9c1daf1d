"""Programs: a graph as a flat list of instructions over numbered slots.

Ordering, differentiation, chains and passes go in.
It must not know arrays.
"""

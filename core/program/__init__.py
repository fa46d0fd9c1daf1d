"""Programs: a graph as a flat list of instructions over numbered slots.

Belongs here: ordering, differentiation, chains and passes.
It must not know arrays.
"""

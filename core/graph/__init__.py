"""Graphs: variables, functions, inference, cloning, calling.

Belongs here: what users build and traverse.
It must not know programs, or the memory of values.
"""

"""Graphs: variables, functions, inference, cloning, calling.

What users build, and walk, goes in.
It must not know the memory of values, or programs.
"""

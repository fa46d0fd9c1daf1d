"""Graphs: variables, functions, inference, cloning, calling."""

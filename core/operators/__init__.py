"""Operators: the protocol, those that compiling inserts, and what they cost."""

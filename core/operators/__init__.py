"""The operator protocol, operators that compiling inserts, and the cost of operators.

Belongs here: whatever holds for all operators; operators themselves are plugins.
It must not know graphs or programs.
"""

"""The operator protocol, operators that compiling inserts, and what operators cost.

What holds for all operators goes in; operators themselves are plugins.
It must not know graphs or programs.
"""

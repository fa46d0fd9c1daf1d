"""Loops as machine code: the language that they are written in, their compiler, files of code, threads, and the BLAS beside them.

What is about how code runs on a processor, whatever it computes, goes in.
It must not know operators, graphs, or any loop of the parts above but by its decorator.
"""

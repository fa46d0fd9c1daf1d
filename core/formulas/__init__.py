"""What element-wise operators compute, as formulas: trees of primitives, their derivatives, steps on arrays, and source in C.

What follows from a formula alone goes in.
It must not know operators but by the formula that they state.
"""

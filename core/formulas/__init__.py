"""What element-wise operators compute, as formulas: trees of primitives, their derivatives, steps on arrays, and source in C.

Belongs here: whatever follows from a formula alone.
It must not know operators beyond their formulas.
"""

"""Programs at work: sizes, memory, arrays, loops, evaluation.

Belongs here: everything that happens once there is data.
It must not know its callers.
"""

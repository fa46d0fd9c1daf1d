"""Programs at work: sizes, memory, arrays, loops, evaluation.

What happens once there are data goes in.
It must not know who calls.
"""

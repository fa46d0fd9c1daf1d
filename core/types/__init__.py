"""What is known before there are data: axes, specs, types; and how rows lie: layouts, sparse rows, contexts.

Descriptions of values go in, and checks of arguments.
It must not know operators or graphs.
"""

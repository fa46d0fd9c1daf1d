"""What is known before there is data: axes, specs, types; and the layout of rows: layouts, sparse rows, contexts.

Belongs here: descriptions of values, and checks of arguments.
It must not know operators or graphs.
"""

"""How plugins come in: hooks, the plugin manager, registries, the backend protocol, devices, compiled code.

What a plugin registers, and how it is found, goes in.
It must not know graphs or programs.
"""

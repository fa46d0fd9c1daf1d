"""How plugins come in: hooks, the plugin manager, registries, the backend protocol, devices, compiled code.

Belongs here: what plugins register, and how they are found.
It must not import graphs or programs.
"""

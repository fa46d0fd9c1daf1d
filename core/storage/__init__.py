"""Files: written atomically, locked, trusted, recognised by their first bytes.

Belongs here: reading and writing of files in general.
It must not know their contents.
"""

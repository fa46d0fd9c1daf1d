"""Files: written as a whole, locked, trusted, known by their first bytes.

What reads or writes files in general goes in.
It must not know what is in them.
"""

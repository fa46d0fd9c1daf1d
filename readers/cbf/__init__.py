"""CNTK's binary format: what a text file holds, in the form it has in memory.

``layout`` knows the header at the end of a file, ``chunk`` the sequences of a chunk; ``deserializer`` reads files and ``writer`` makes
them, of whatever a deserializer reads.
"""

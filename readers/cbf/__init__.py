"""CNTK's binary format: the contents of a text file in the form that they have in memory.

``layout`` knows the header at the end of a file, ``chunk`` the sequences of a chunk; ``deserializer`` reads files and ``writer`` makes
them from the data of any deserializer.
"""

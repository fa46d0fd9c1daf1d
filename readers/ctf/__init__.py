"""CNTK's text format: a line holds samples of named streams, ``12 |x 560:1 |y 0 0 1 |# comment``.

``text`` reads parts of a file, ``index`` finds the sequences in it and ``index_file`` keeps what it found.  Three ways of reading give
the same: ``grammar`` goes line by line and says what is wrong with one, ``scan`` (with ``numbers``) reads plain text in bulk with NumPy,
and ``kernel`` (with ``floats``; ``compiled`` calls it) reads any text, compiled by Numba.  A ``document`` is a text that is read in one
of the last two ways, and by the grammar where these give up; the ``deserializer`` reads documents, chunk by chunk.
"""

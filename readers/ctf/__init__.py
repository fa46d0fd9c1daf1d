"""CNTK's text format: a line holds samples of named streams, ``12 |x 560:1 |y 0 0 1 |# comment``.

``index`` finds the sequences of a file, ``grammar`` reads one line after another and says what is wrong with it, ``scan`` reads plain
text in bulk, and ``deserializer`` puts them together.
"""

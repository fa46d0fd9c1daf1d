"""The model format of CNTK's first version, which BrainScript's networks were saved in: read, and written for older programs.

The format, determined by writing and reading many files with CNTK 2.7:

* Numbers are little-endian: counts of 64 bits, dimensions, axes and steps of 32, flags of 8.  Texts have characters of 16 bits and end with
  a zero.  Sections lie between texts that begin with B and E.
* A file is ``BCN``, a version, the number of nodes, their list, the operands of each, lists of nodes by role, ``ECN``.
* The version lies between ``BVersion`` and ``EVersion``.  CNTK 2.7 writes 31, refuses later ones, and reads all before; from 8 on inputs
  have an axis and can be read here.  ``Field.since`` says which attributes came later.
* A node (``BNodeList``) is an element type, the same in all of a file, an operation, a name, and the operation's attributes without
  their names or lengths: one operation that is not known makes the rest of a file unreadable.  CNTK 2 puts its uid and its name into the
  name, and sorts nodes by name, whatever the case.
* Shapes are a rank and dimensions, the engine's first one first, which is our last.  Axes count from 1 in the same order.
* A parameter has a learning rate multiplier, 0 for constants, its shape, and a matrix: ``BMAT``, the size of a value, a name, flags, rows,
  columns, values column by column, ``EMAT``.  Our arrays lie in memory in this order.
* An input has unused sizes, its shape, the name of its axis, and a multiplier that is not 0 where it needs a gradient.  Axes are nodes of
  their own: ``*`` is the default sequence axis, ``__noSequenceAxis`` stands for none.
* Relations (``BRelation``) name a node, count its operands and name them.  A loop needs nothing else.
* Role lists (``BRootNodes``: features, labels, criteria, evaluation, outputs) may be empty: a node that no other reads is a result as well.
  CNTK 2.7 lists results that lie in a loop.
"""

from .format import CNTKv1

__all__ = ["CNTKv1"]

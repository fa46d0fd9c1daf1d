"""``python -m cntk``: the same as the ``cntk`` program."""

from cntk.cli import main

raise SystemExit(main())

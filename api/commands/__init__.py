"""The built-in commands of the ``cntk`` program, a file a command."""

"""``cntk watch``: the curves of runs whose event files are in a folder, in a terminal or as a page."""

"""Models in files and pickles."""

"""Arrays in NumPy's own files."""

"""Files: written as a whole, locked, trusted, known by their first bytes."""

"""Built-in plugins: operators, progress writers, and in time distributed strategies and model formats."""

"""Built-in plugins: operators, progress writers, distributed strategies and model formats."""

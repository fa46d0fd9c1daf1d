"""Arrays on NVIDIA GPUs, by CuPy, which is imported where somebody asks for a GPU."""

"""Running programs: sizes, memory, arrays, steps."""

"""Backends: the array libraries that programs run on."""

"""Helpers that CNTK programs import from its test package."""

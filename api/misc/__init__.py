"""Odds and ends of CNTK's public names."""

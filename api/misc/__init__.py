"""Odds and ends of CNTK's public names: conversion of graphs."""

from __future__ import annotations

from cntk.misc.converter import convert
from cntk.misc.optimized_rnnstack_converter import convert_optimized_rnnstack

__all__ = ["convert", "convert_optimized_rnnstack"]

"""Layers that are models of a kind."""

from __future__ import annotations

from cntk.layers.models.attention import AttentionModel

__all__ = ["AttentionModel"]

"""Reads ONNX files: their graphs, as graphs of the operators here."""

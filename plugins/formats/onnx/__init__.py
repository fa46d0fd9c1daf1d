"""The ONNX format: graphs written for other programs, and theirs read."""

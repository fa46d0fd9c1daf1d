"""Images: map files, decoding, and transforms.

An image is an array ``(height, width, channels)`` with channels in the order blue, green, red, as CNTK has them; samples of a stream are
``(channels, height, width)`` in float32.  Read ``transform``, ``crop``, ``deserializer``.
"""

"""Readers: where minibatches come from.

A *deserializer* knows a format: which streams a file holds and where its sequences lie, in chunks that are read one at a time.  A
*randomizer* puts chunks, and the sequences of windows of them, in order, a *sequencer* walks through it sweep after sweep, and a *packer*
makes minibatches of these.  Read ``deserializer``, ``randomizer``, ``sequencer``, ``packer``, then ``chunks`` and ``prefetch``, which
read and prepare in threads, and ``reader``, which combines them; formats, each in a folder of its own, register like those of plugins.
``cntk.io`` is the public name of it all.
"""

from __future__ import annotations

from ..core.extension.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_deserializers(register: Register) -> None:
    register("Base64ImageDeserializer", "cntk.readers.image.base64:Base64ImageDeserializer")
    register("CBFDeserializer", "cntk.readers.cbf.deserializer:CBFDeserializer")
    register("CTFDeserializer", "cntk.readers.ctf.deserializer:CTFDeserializer")
    register("HTKFeatureDeserializer", "cntk.readers.speech.features:HTKFeatureDeserializer")
    register("HTKMLFBinaryDeserializer", "cntk.readers.speech.binary_mlf:HTKMLFBinaryDeserializer")
    register("HTKMLFDeserializer", "cntk.readers.speech.mlf:HTKMLFDeserializer")
    register("ImageDeserializer", "cntk.readers.image.deserializer:ImageDeserializer")
    register("LatticeDeserializer", "cntk.readers.speech.lattice:LatticeDeserializer")
    register("NumpyDeserializer", "cntk.readers.arrays.deserializer:NumpyDeserializer")
    register("ParquetDeserializer", "cntk.readers.parquet.deserializer:ParquetDeserializer")

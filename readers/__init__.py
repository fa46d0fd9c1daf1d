"""Readers: where minibatches come from.

A *deserializer* knows a format: which streams a file holds and where its sequences lie, in chunks that are read one at a time.  A
*sequencer* puts the sequences in order, sweep after sweep, and cuts the order into minibatches.  Read ``deserializer``, ``randomizer``,
``sequencer``; the formats, each in a folder of its own, register like those of any plugin.  ``cntk.io`` is the public name of it all.
"""

from __future__ import annotations

from ..core.hookspecs import Register, hookimpl


@hookimpl
def cntk_register_deserializers(register: Register) -> None:
    register("CTFDeserializer", "cntk.readers.ctf.deserializer:CTFDeserializer")

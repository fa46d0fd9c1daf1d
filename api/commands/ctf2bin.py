"""``cntk ctf2bin``: text files in CNTK's binary format."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cntk.io.stream_def import StreamDef, StreamDefs
from cntk.readers.cbf.writer import write_cbf
from cntk.readers.ctf.deserializer import CHUNK_SIZE, CTFDeserializer
from cntk.readers.deserializer import Errors

from .arguments import Parser, number, same_file, text_in


def run(arguments: Sequence[str]) -> int:
    """Convert a file from CNTK's text format to its binary format.

    Args:
        arguments: ``--input``, ``--header`` and ``--output``, three files; ``--help`` lists the others.

    Returns:
        0.

    Raises:
        OSError, RuntimeError, ValueError: the text cannot be converted.

    >>> import pathlib, tempfile
    >>> from cntk.commands.ctf2bin import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, header, binary = (str(pathlib.Path(folder, name)) for name in ("a.ctf", "a.header", "a.cbf"))
    ...     _ = pathlib.Path(text).write_text("0 |S0 3:1 |S1 1 2\\n1 |S0 5:2 |S1 3 4\\n")
    ...     _ = pathlib.Path(header).write_text("words S0 sparse 8\\nfeatures S1 dense 2\\n")
    ...     run(["--input", text, "--header", header, "--output", binary])
    ...     C.io.CBFDeserializer(binary).stream_infos()
    2 sequences of 2 samples in 1 chunks
    0
    [words([8]), features([2])]
    """
    parser = Parser(prog="cntk ctf2bin", description="Convert a file from CNTK's text format to its binary format.")
    parser.add_argument("--input", required=True, help="the text file, or a pattern")
    parser.add_argument("--header", required=True, help="a file with a line for each stream: name, field, 'dense' or 'sparse', elements")
    parser.add_argument("--output", required=True, help="the binary file")
    parser.add_argument("--chunk_size", type=number(int, 1), default=CHUNK_SIZE, help="bytes of text that make a chunk, %(default)s")
    parser.add_argument("--precision", choices=("float", "double"), default="float")
    parser.add_argument("--max_errors", type=number(int, 0), default=0, help="sequences that may be left out because they cannot be read")
    parser.add_argument("--json", action="store_true", help="print what was written for programs")
    options = parser.parse_args(arguments)
    for name in ("input", "header"):
        if same_file(getattr(options, name), options.output):
            parser.error(f"--output and --{name} are the same file, {options.output!r}; give another one for the output")
    streams = streams_of(text_in(options.header).splitlines(), options.header)
    deserializer = CTFDeserializer(options.input, streams)
    deserializer["precision"] = options.precision
    deserializer["chunkSizeInBytes"] = options.chunk_size
    layout = write_cbf(options.output, deserializer, Errors(options.max_errors))
    sequences, samples = (sum(chunk[column] for chunk in layout.chunks) for column in (1, 2))
    if options.json:
        print(json.dumps({"file": options.output, "sequences": sequences, "samples": samples, "chunks": len(layout.chunks)}, indent=2))
    else:
        print(f"{sequences} sequences of {samples} samples in {len(layout.chunks)} chunks")
    return 0


def streams_of(lines: Sequence[str], header: str) -> StreamDefs:
    """The streams that the lines of a header, such as ``words S0 sparse 943``, list.

    Raises:
        ValueError: a line is none of that form, or there is none.
    """
    streams = {}
    for place, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 4 or parts[2] not in ("dense", "sparse") or not parts[3].isdecimal():
            raise ValueError(
                f"{header!r}, line {place}: expected a name, a field, 'dense' or 'sparse' and a number of elements, such as "
                f"words S0 sparse 943, got {line!r:.80}"
            )
        streams[parts[0]] = StreamDef(field=parts[1], shape=int(parts[3]), is_sparse=parts[2] == "sparse")
    if not streams:
        raise ValueError(f"{header!r} names no stream; expected a line for each, such as words S0 sparse 943")
    return StreamDefs(**streams)

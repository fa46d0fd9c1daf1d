"""Compares how fast text in CNTK's format is read: by opencntk, with and without Numba, by CNTK 2.7, pandas and PyTorch.

    python benchmarks/reading.py [--size 500] [--rounds 3] [--window 4000] [--files more.ctf ...]

Files of so many megabytes are generated, read in minibatches by each program in turns, in a process of its own each time, and deleted.
The table tells megabytes a second, the medians of all rounds, the time to the first minibatch of a file that is indexed, and the memory
that is used at most.  CNTK 2.7 takes part where the environment variable CNTK27 names a program that runs a Python script on it, pandas
and PyTorch where they are installed.  ``--window`` is the size of a further file that is read to see how much of it is in memory.

This file also runs on Python 3.6, the last that CNTK 2.7 was made for.
"""

import argparse
import importlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

SAMPLES = 4096
"""Of a minibatch."""

STREAMS = {
    "dense": [("labels", 10, False), ("features", 100, False)],
    "sparse": [("y", 10, True), ("x", 100000, True)],
    "sequences": [("S0", 943, True), ("S2", 129, True)],
}
"""By kind of file its fields, their elements, and whether they are sparse; a file of sentences, such as ATIS's, has sequences."""


# ---- files ----


def dense_lines(random):
    """Rows of a one-hot label and a hundred numbers of six digits."""
    for row in range(1000):
        label = " ".join("1" if row % 10 == place else "0" for place in range(10))
        yield "|labels {} |features {}\n".format(label, " ".join(f"{number:.6f}" for number in random.rand(100)))


def sparse_lines(random):
    """Rows of a label and forty of a hundred thousand features."""
    for row in range(2000):
        indices = np.sort(random.choice(100000, 40, replace=False))
        pairs = " ".join("{}:{:.4f}".format(*pair) for pair in zip(indices, random.rand(40)))  # noqa: B905
        yield f"|y {row % 10}:1 |x {pairs}\n"


def sequence_lines(random):
    """Sentences of words and tags, as long as ATIS's."""
    for length in np.clip(np.rint(random.gamma(9, 1.49, 2000)), 5, 39).astype(int):
        steps = zip(random.randint(943, size=length), random.randint(129, size=length))  # noqa: B905
        yield "".join("{{0}}\t|S0 {}:1 |S2 {}:1\n".format(*step) for step in steps)


LINES = {"dense": dense_lines, "sparse": sparse_lines, "sequences": sequence_lines}


def generate(kind, path, megabytes):
    """Write a file: a block of lines again and again, sequences with numbers that go on."""
    lines = list(LINES[kind](np.random.RandomState(0)))
    written = number = 0
    with open(path, "wb") as file:
        while written < megabytes * 1e6:
            block = "".join(line.format(number + place) for place, line in enumerate(lines)) if kind == "sequences" else "".join(lines)
            number += len(lines)
            written += file.write(block.encode())


# ---- readers: each yields once a minibatch ----


def read_cntk(path, kind, randomize=False):
    """With opencntk or CNTK 2.7, whichever there is."""
    from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs

    streams = StreamDefs(**{name: StreamDef(field=name, shape=dim, is_sparse=is_sparse) for name, dim, is_sparse in STREAMS[kind]})
    source = MinibatchSource(CTFDeserializer(path, streams), randomize=randomize, max_sweeps=1)
    while source.next_minibatch(SAMPLES):
        yield


def read_numpy(path, kind):
    """With opencntk where Numba is left alone."""
    from cntk.core.common.thresholds import NEVER, overridden

    with overridden(ctf_compiled=NEVER):
        return read_cntk(path, kind)


def read_pandas(path, kind):
    """Rows of numbers alone are something that pandas can read."""
    import pandas

    for rows in pandas.read_csv(path, sep=" ", header=None, chunksize=SAMPLES, engine="c"):
        rows.iloc[:, 1:11].to_numpy(np.float32), rows.iloc[:, 12:].to_numpy(np.float32)
        yield


def read_torch(path, kind):
    """With PyTorch's DataLoader, two workers, and a data set of lines that are taken apart in Python."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Lines(IterableDataset):
        def __iter__(self):
            worker, size = get_worker_info(), os.path.getsize(path)
            with open(path, "rb") as file:
                file.seek(size * worker.id // worker.num_workers)
                if worker.id:
                    file.readline()
                end = size * (worker.id + 1) // worker.num_workers
                while file.tell() < end:
                    yield self.numbers(file.readline())

        def numbers(self, line):
            fields = [field.replace(b":", b" ").split()[1:] for field in line.split(b"|")[1:] if not field.startswith(b"#")]
            return [np.array(field, dtype=np.float32) for field in fields if field]

    def joined(samples):
        return [torch.from_numpy(np.concatenate(field)) for field in zip(*samples)]  # noqa: B905

    for _ in DataLoader(Lines(), batch_size=SAMPLES, num_workers=2, collate_fn=joined):
        yield


READERS = {"opencntk": read_cntk, "opencntk, NumPy": read_numpy, "CNTK 2.7": read_cntk, "pandas": read_pandas, "PyTorch": read_torch}


MODULES = {"pandas": "pandas", "PyTorch": "torch.utils.data"}


def measure(reader, path, kind):
    """Seconds to the first minibatch and to the end, processor seconds, and bytes of memory at most beyond those of the import."""
    module = importlib.import_module(MODULES.get(reader, "cntk.io"))
    getattr(module, "CTFDeserializer", None)  # opencntk imports it when it is asked for
    before, start, computed = used(), time.perf_counter(), time.process_time()
    first = None
    for _ in READERS[reader](path, kind):
        first = first or time.perf_counter() - start
    computed = time.process_time() - computed
    return first, time.perf_counter() - start, computed, used() - before


def used():
    """Bytes of memory that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- the table ----


def programs():
    """By reader the program that runs it, where it is present."""
    found = {"opencntk": sys.executable, "opencntk, NumPy": sys.executable}
    if os.environ.get("CNTK27"):
        found["CNTK 2.7"] = os.environ["CNTK27"]
    for name, module in MODULES.items():
        if subprocess.call([sys.executable, "-c", "import " + module], stderr=subprocess.DEVNULL) == 0:
            found[name] = sys.executable
    return found


def measured(program, reader, path, kind):
    """One measurement in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if program == sys.executable or name != "PYTHONPATH"}
    command = [program, os.path.abspath(__file__), "--measure", reader, path, kind]
    output = subprocess.check_output(command, env=environment, stderr=subprocess.DEVNULL)
    return [float(number) for number in output.decode().splitlines()[-1].split()]


def report(title, path, kind, rounds):
    """Measure all readers in turns and print a line each."""
    size = os.path.getsize(path) / 1e6
    present = {name: program for name, program in programs().items() if name != "pandas" or kind == "dense"}
    results = {name: [] for name in present}
    for number in range(rounds + 1):
        for name, program in present.items():
            # In round 0 indices are made; PyTorch takes long.
            if name.startswith("opencntk") or number == 1 or (number > 1 and name != "PyTorch"):
                results[name].append(measured(program, name, path, kind))
    indexing = results["opencntk"].pop(0)
    results["opencntk, NumPy"].pop(0)
    print(f"{title}: {size:.0f} MB; opencntk's first reading, with indexing, takes {indexing[1]:.2f} s")
    rate = {name: size / np.median([numbers[1] for numbers in result]) for name, result in results.items()}
    for name, result in results.items():
        first, _, computed, memory = np.median(result, axis=0)
        speed = f"{rate[name]:6.0f} MB/s, {size / computed:5.0f} MB a processor second"
        cost = f"first minibatch after {first:.2f} s, {memory / 1e6:5.0f} MB of memory"
        print(f"  {name:16} {speed}, {cost}, opencntk : it {rate['opencntk'] / rate[name]:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Compare how fast text in CNTK's format is read.")
    parser.add_argument("--size", type=int, default=500, help="megabytes of each generated file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window", type=int, default=0, help="megabytes of a file that is read to see how much of it is in memory")
    parser.add_argument("--files", nargs="*", default=[], help="further files, of sentences such as ATIS's")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(*measure(*options.measure))
        return
    folder = tempfile.mkdtemp()
    try:
        if shutil.disk_usage(folder).free < 1.5e6 * max(options.size, options.window):
            raise SystemExit(f"there is not room enough in {folder}; TMPDIR can name another folder")
        for kind in LINES:
            path = os.path.join(folder, kind + ".ctf")
            generate(kind, path, options.size)
            report(kind, path, kind, options.rounds)
            os.remove(path)
        for path in options.files:
            report(os.path.basename(path), path, "sequences", options.rounds)
        if options.window:
            path = os.path.join(folder, "large.ctf")
            generate("dense", path, options.window)
            memory = measured(sys.executable, "opencntk", path, "dense")[3]
            print(f"{os.path.getsize(path) / 1e6:.0f} MB are read with {memory / 1e6:.0f} MB of memory")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

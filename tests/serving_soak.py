"""Loads a server with requests for minutes while its model changes: ``python tests/serving_soak.py --seconds 300``.

It fails where a result is not that of one of the models, a request is lost or refused, or memory grows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from serving import Client, ServerProcess

import cntk as C

GROWTH = 1.1
"""Times that memory may have grown since a fifth of the time was over."""


def saved(path: Path, seed: int) -> Any:
    """The dense network 784-200-10, in a file that replaces another at once."""
    x, init = C.input_variable(784, name="x"), C.glorot_uniform(seed=seed)
    model = C.layers.Sequential([C.layers.Dense(200, activation=C.relu, init=init), C.layers.Dense(10, init=init, name="z")])(x)
    model.save(str(path))
    return model


def wrong_rows(answers: list[tuple[Any, Any]], models: list[Any]) -> int:
    """How many rows of answers are those of no model."""
    if not answers:
        return 0
    data, found = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    return int((~np.any([np.isclose(found, model.eval({"x": data}), rtol=1e-4, atol=1e-5).all(1) for model in models], 0)).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    requests = rows = wrong = lost = refused = reloads = 0
    memory: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mlp.dnn")
        models = [saved(path, 0)]
        arguments = (str(path), "--poll", "0.2", "--workers", str(options.workers))
        with ServerProcess(*arguments, log=Path(folder, "log")) as server:
            server.wait_for("ready", options.workers)
            process = psutil.Process(server.process.pid)
            clients = [Client(server.address, "mlp", seed) for seed in range(options.clients)]
            for client in clients:
                client.start()
            end = time.monotonic() + options.seconds
            while time.monotonic() < end:
                time.sleep(min(2.0, options.seconds / 10))
                reloads += 1
                models = [models[-1], saved(path, reloads)]
                server.wait_for("model replaced", reloads * options.workers)
                time.sleep(0.2)
                for client in clients:
                    answers, client.answers = client.answers, []
                    requests += len(answers)
                    rows += sum(len(data) for data, _ in answers)
                    wrong += wrong_rows(answers, models)
                memory.append(sum(one.memory_info().rss for one in (process, *process.children(recursive=True))))
            for client in clients:
                client.stopping.set()
                client.join(20)
            lost, refused = sum(len(client.lost) for client in clients), sum(len(client.refused) for client in clients)
    early, late = np.median(memory[: len(memory) // 5 + 1][-3:]), np.median(memory[-3:])
    print(f"{requests} requests of {rows} rows by {options.clients} clients in {options.seconds:g} s, {reloads} reloads: ", end="")
    print(f"{wrong} wrong, {lost} lost, {refused} refused; memory {early / 2**20:.1f} MiB early, {late / 2**20:.1f} MiB late")
    return int(bool(wrong or lost or refused or late > GROWTH * early or not requests))


if __name__ == "__main__":
    raise SystemExit(main())

"""Building and compiling large graphs: how long each stage takes by the number of nodes, and whether it grows faster than the graph.

    python benchmarks/compiling.py [GRAPH ...]

Of each size and stage it prints milliseconds of processor time and, in brackets, the time of a node in units of that at the smallest
size: 1.0 is linear.
"""

import sys
import time

import numpy as np

import cntk as C
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.run.evaluate import feeds_for
from cntk.core.run.sizes import Sizes
from cntk.core.run.workspace import Run, Workspace

NODES = [1000, 2000, 5000, 10000, 20000]
STAGES = ["build", "clone", "program", "sizes", "bind", "step"]
ROUNDS = 3


def chain(nodes):
    """Element-wise operators one after another."""
    y = C.input_variable(4) + C.parameter(4)
    for _ in range(nodes):
        y = C.tanh(y)
    return y


def fan(nodes):
    """One value that half of the operators read, and the sum of what they make of it."""
    x = C.input_variable(4) * C.parameter(4)
    terms = [C.sin(x) for _ in range(nodes // 2)]
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]


def mixture(nodes):
    """Products, reductions, slices and splices by turns."""
    y = C.input_variable(4)
    W = C.parameter((4, 4), init=0.1)
    for _ in range(nodes // 8):
        left, right = C.slice(y, 0, 0, 2), C.slice(y, 0, 2, 4)
        y = C.softmax(C.relu(C.splice(C.tanh(right), left) @ W)) - C.reduce_mean(y)
    return y


def parameters(nodes):
    """A product and a sum with parameters of their own for every second operator."""
    y = C.input_variable(4)
    for _ in range(nodes // 3):
        y = C.tanh(C.times(y, C.parameter((4, 4), init=0.1)) + C.parameter(4))
    return y


def dense_layers(nodes):
    """Layers, blocks of three operators, that a list of them becomes a model of."""
    return C.layers.Sequential([C.layers.Dense(4, activation=C.tanh) for _ in range(nodes // 3)])(C.input_variable(4))


def dense_calls(nodes):
    """The same layers, called one after another."""
    y = C.input_variable(4)
    for _ in range(nodes // 3):
        y = C.layers.Dense(4, activation=C.tanh)(y)
    return y


def nested(nodes):
    """Blocks in blocks, ten deep, side by side."""
    f = C.Function(lambda x: C.tanh(x + 1))
    for depth in range(10):
        f = C.BlockFunction("Level", "level%d" % depth)(lambda x, f=f: f(x))  # noqa: UP031
    y = C.input_variable(4) * C.parameter(4)
    for _ in range(nodes // 2):
        y = f(y)
    return y


def loops(nodes):
    """Recurrences one after another, each closed when it has been made."""
    y = C.sequence.input_variable(4)
    R = C.parameter((4, 4), init=0.1)
    for _ in range(nodes // 4):
        before = C.placeholder()
        y = C.tanh(y + C.times(C.sequence.past_value(before), R))
        y.replace_placeholders({before: y.output})
    return y


def closed_at_once(nodes):
    """Recurrences one after another, all closed together."""
    y = C.sequence.input_variable(4)
    R = C.parameter((4, 4), init=0.1)
    results = {}
    for _ in range(nodes // 4):
        before = C.placeholder(4)
        y = C.tanh(y + C.times(C.sequence.past_value(before), R))
        results[before] = y.output
    return y.replace_placeholders(results)


def lstms(nodes):
    """Layers of LSTMs, 14 operators each."""
    lstm = [C.layers.Recurrence(C.layers.LSTM(4)) for _ in range(nodes // 20)]
    return C.layers.Sequential(lstm)(C.sequence.input_variable(4))


def one_cycle(nodes):
    """A single recurrence with all operators in it."""
    before = C.placeholder(4)
    y = C.sequence.input_variable(4) * C.parameter(4) + C.sequence.past_value(before)
    for _ in range(nodes):
        y = C.tanh(y)
    return y.replace_placeholders({before: y.output})


def unrolled(nodes):
    """A recurrent network unrolled over the parts of its input, whose states are spliced."""
    steps = nodes // 6
    x = C.input_variable(4 * steps)
    W, R = C.parameter((4, 4), init=0.1), C.parameter((4, 4), init=0.1)
    h, states = C.constant(0, 4), []
    for step in range(steps):
        h = C.tanh(C.times(C.slice(x, 0, 4 * step, 4 * step + 4), W) + C.times(h, R))
        states.append(h)
    return C.splice(*states)


GRAPHS = [
    chain, fan, mixture, parameters, dense_layers, dense_calls, nested, loops, closed_at_once, lstms, one_cycle, unrolled,
]  # fmt: skip


def data_for(function):
    """A minibatch of two samples, or of two sequences of two steps."""
    (x,) = function.arguments
    sequence = len(x.dynamic_axes) > 1
    return {x: [np.ones((2, *x.shape), np.float32)] * 2 if sequence else np.ones((2, *x.shape), np.float32)}


def seconds(make, nodes):
    """Seconds that each stage takes, from building to a training step without its learner."""
    times = [time.process_time()]

    def done(result):
        times.append(time.process_time())
        return result

    function = done(make(nodes))
    done(function.clone("clone"))
    output = function.output
    program = done(Program([output], backend_named("numpy"), wrt=function.parameters, gradient_roots=[output], training=True))
    feeds = feeds_for(program, data_for(function))
    times[-1] = time.process_time()
    workspace = Workspace(program)
    done(Sizes(program, feeds))
    run = Run(program, workspace, done(workspace.load(feeds)))
    run.forward()
    run.backward()
    done(None)
    took = np.diff(times)
    took[4] -= took[3]  # to load is to find sizes again, and to bind
    return took


def main(names):
    for make in [make for make in GRAPHS if not names or make.__name__ in names]:
        print(f"{make.__name__:14} {make.__doc__}")
        print(f"{'nodes':>14}" + "".join(f"{stage:>16}" for stage in [*STAGES, "all"]))
        first = None
        for nodes in NODES:
            took = np.min([seconds(make, nodes) for _ in range(ROUNDS)], axis=0)
            took = np.append(took, took.sum())
            first = took / nodes if first is None else first
            print(f"{nodes:14}" + "".join(f"{1000 * t:10.1f} ({t / nodes / f:.1f})" for t, f in zip(took, first, strict=True)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

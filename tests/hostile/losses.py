"""Losses and metrics against definitions in double precision, most of them by trying all alignments, rankings or pairs."""

from __future__ import annotations

from itertools import groupby, pairwise, permutations, product
from typing import Any

import numpy as np
import paths
from alignments import in_time
from bounds import check, sum_unit

import cntk as C

ROUNDINGS = 16
"""Errors may be so many roundings of the terms' magnitudes."""


def trial(random: np.random.Generator) -> str:
    """One loss with a minibatch for it."""
    path = str(random.choice(paths.PATHS))
    kind = TRIALS[random.integers(len(TRIALS))]
    with paths.on(path):
        kind(random)
    return f"{kind.__name__}, {path}"


def _type(random: np.random.Generator, *more: Any) -> Any:
    return (np.float32, np.float64, *more)[random.integers(2 + len(more))]


def _wide(array: Any) -> Any:
    """Numbers as exact as the machine has them, that references to double precision are exact, too."""
    return np.asarray(array, np.longdouble)


# ---- connectionist temporal classification ----


def alignments(random: np.random.Generator) -> None:
    """Costs and gradients of labels against sums over all ways to give each step a class."""
    dtype = _type(random, np.float16)
    classes = int(random.integers(2, 4))
    blank = int(random.integers(classes))
    delay = int(random.choice([-1, -1, 0, 1, 2]))
    minibatch = []
    for _ in range(random.integers(1, 5)):
        steps = int(random.integers(1, 6))
        begins = np.flatnonzero(random.random(steps) < random.random())
        labels = [(int(step), int(random.choice([c for c in range(classes) if c != blank]))) for step in begins]
        scores = (random.standard_normal((steps, classes)) * random.choice([1, 1, 5, 30])).astype(dtype)
        minibatch.append((scores, labels))
    features = C.sequence.input_variable(classes, dtype, needs_gradient=True)
    marks = C.sequence.input_variable(classes, dtype)
    cost = C.forward_backward(C.labels_to_graph(marks), features, blank, delay)
    data = {features: [scores for scores, _ in minibatch], marks: [_marked(len(s), labels, classes, dtype) for s, labels in minibatch]}
    gradients, value = cost.grad(data, wrt=[features], outputs=[cost.output])
    expected = [_all_alignments(scores, labels, blank, delay) for scores, labels in minibatch]
    what = f"forward_backward {np.dtype(dtype)}, blank {blank}, delay {delay}, labels {[labels for _, labels in minibatch]}"
    unit = ROUNDINGS * sum_unit(dtype)
    sizes = [len(scores) * (1 + np.abs(_log_softmax(scores)).max()) for scores, _ in minibatch]
    check(what, value, sum(right for right, _ in expected), unit * sum(sizes) + 1e-7 * sum(right for right, _ in expected if right > 1e10))
    for found, (_, right), size in zip(gradients, expected, sizes, strict=True):
        check(f"gradient of {what}", found, right, unit * size)


def _marked(steps: int, labels: list[tuple[int, int]], classes: int, dtype: Any) -> Any:
    """2 where a label begins, 1 as long as it goes on."""
    array, begins, current = np.zeros((steps, classes), dtype), dict(labels), 0
    for step in range(steps):
        current = begins.get(step, current)
        array[step, current] = 2 if step in begins else 1
    return array


def _log_softmax(scores: Any) -> Any:
    scores = _wide(scores) - _wide(scores).max(1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


def _all_alignments(scores: Any, labels: list[tuple[int, int]], blank: int, delay: int) -> tuple[float, Any]:
    """The cost, and its gradient: probabilities of classes less how often the fitting paths are there."""
    logarithms, right = _log_softmax(scores), [label for _, label in labels]
    steps = np.arange(len(scores))
    paths_found, logs = [], []
    for path in product(range(scores.shape[1]), repeat=len(scores)):
        if [c for c, _ in groupby(path) if c != blank] == right and (delay < 0 or in_time(path, labels, blank, delay)):
            paths_found.append(path)
            logs.append(logarithms[steps, path].sum())
    if not logs:
        return 1e11, np.zeros_like(logarithms)
    total = np.logaddexp.reduce(logs)
    gradient = np.exp(logarithms)
    for path, log in zip(paths_found, logs, strict=True):
        gradient[steps, path] -= np.exp(log - total)
    return -total, gradient


# ---- rankings ----


def rankings(random: np.random.Generator) -> None:
    """LambdaRank and NDCG against all rankings and pairs of small groups."""
    dtype = _type(random, np.float16)
    rows = int(random.integers(1, 13))
    groups = random.integers(0, 4, rows) * 7.0 - 3
    scores = random.integers(-3, 4, rows).astype(dtype) if random.random() < 0.5 else random.standard_normal(rows).astype(dtype)
    gains = random.integers(0, 4, rows).astype(dtype)
    expected, first, slopes, sizes = 0.0, 0.0, np.zeros(rows), np.zeros(rows)
    names = np.unique(groups)
    for name in names:
        of = np.flatnonzero(groups == name)
        loss, top, push, size = _of_group(_wide(scores[of]), _wide(gains[of]))
        expected, first = expected + loss, first + top
        slopes[of], sizes[of] = push, size
    s, g, q = (C.input_variable(1, dtype, needs_gradient=number == 0) for number in range(3))
    data = {v: array.reshape(-1, 1).astype(dtype) for v, array in ((s, scores), (g, gains), (q, groups))}
    what = f"lambda_rank {np.dtype(dtype)} of {scores.tolist()}, gains {gains.tolist()}, groups {groups.tolist()}"
    loss = C.lambda_rank(s, g, q)
    gradients, value = loss.grad(data, wrt=[s], outputs=[loss.output])
    unit = ROUNDINGS * sum_unit(dtype)
    check(what, value, 100 * expected / len(names) * rows, unit * 100 * rows)
    check(f"gradient of {what}", gradients.reshape(-1), slopes, unit * sizes)
    check(f"ndcg_at_1: {what}", C.ndcg_at_1(s, g, q).eval(data), 100 * first / len(names) * rows, unit * 100 * rows)


def _of_group(scores: Any, gains: Any) -> tuple[float, float, Any, Any]:
    """1 - NDCG, share of the best gain at the top, and LambdaRank's gradient with the magnitude of its terms."""
    n = len(scores)
    discounts = [1 / np.log(2 + place) for place in range(n)]
    best = sum(gain * discount for gain, discount in zip(sorted(gains, reverse=True), discounts, strict=True))
    if n <= 6:  # of all orders that go by score the worst one counts
        orders = [order for order in permutations(range(n)) if all(scores[a] >= scores[b] for a, b in pairwise(order))]
        order = min(orders, key=lambda order: sum(gains[row] * discounts[place] for place, row in enumerate(order)))
    else:
        order = tuple(sorted(range(n), key=lambda row: (-scores[row], gains[row])))
    slopes, sizes = np.zeros(n), np.zeros(n)
    if not best:
        return 1.0, 0.0, slopes, sizes
    place = {row: at for at, row in enumerate(order)}
    for i, j in permutations(range(n), 2):
        if gains[i] > gains[j]:
            change = abs((gains[i] - gains[j]) * (discounts[place[i]] - discounts[place[j]])) / best
            push = change / (1 + np.exp(scores[i] - scores[j]))
            slopes[i] -= push
            slopes[j] += push
            sizes[[i, j]] += push
    got = sum(gains[row] * discounts[at] for at, row in enumerate(order))
    return 1 - got / best, gains[order[0]] / max(gains), slopes, sizes


# ---- edit distance ----


def edits(random: np.random.Generator) -> None:
    """The error against the number of edits on the cheapest of all ways from one sequence to the other."""
    dtype, classes = _type(random, np.float16), int(random.integers(1, 5))
    penalties = [float(random.choice([0, 0.5, 1, 1, 2, 3])) for _ in range(3)]
    squash, ignored = bool(random.random() < 0.5), [token for token in range(classes) if random.random() < 0.2]
    pairs = [[random.integers(0, classes, random.integers(1, 8)).tolist() for _ in range(2)] for _ in range(random.integers(1, 5))]
    a = C.sequence.input_variable(classes, dtype, sequence_axis=C.Axis.new_unique_dynamic_axis("a"))
    b = C.sequence.input_variable(classes, dtype, sequence_axis=C.Axis.new_unique_dynamic_axis("b"))
    names = np.eye(classes, dtype=dtype)
    error = C.edit_distance_error(a, b, *penalties, squash, ignored)
    value = error.eval({a: [names[left] for left, _ in pairs], b: [names[right] for _, right in pairs]})
    total = tokens = steps = 0
    for left, right in pairs:
        steps += len(left)
        left, right = ([token for token in _squashed(side, squash) if token not in ignored] for side in (left, right))
        tokens += len(right)
        total += _fewest_edits(left, right, *penalties)
    what = f"edit_distance_error {pairs} penalties {penalties} squash {squash} ignored {ignored}"
    check(what, value, total * steps / max(tokens, 1), sum_unit(dtype) * total * steps)


def _squashed(tokens: list[int], squash: bool) -> list[int]:
    return [token for token, _ in groupby(tokens)] if squash else tokens


def _fewest_edits(left: list[int], right: list[int], substitution: float, deletion: float, insertion: float) -> int:
    """Edits on the cheapest way; of equally cheap steps at the end of one a substitution counts first, then an insertion."""
    known: dict[tuple[int, int], tuple[float, int]] = {}
    for i, j in product(range(len(left) + 1), range(len(right) + 1)):
        ways = []
        if i and j:
            differ = left[i - 1] != right[j - 1]
            cost, count = known[i - 1, j - 1]
            ways.append((cost + substitution * differ, count + differ))
        if j:
            cost, count = known[i, j - 1]
            ways.append((cost + insertion, count + 1))
        if i:
            cost, count = known[i - 1, j]
            ways.append((cost + deletion, count + 1))
        known[i, j] = min(ways, key=lambda way: way[0]) if ways else (0.0, 0)
    return known[len(left), len(right)][1]


# ---- sampled and hierarchical softmax ----


def contrasts(random: np.random.Generator) -> None:
    """Noise contrastive estimation against its formula, with the classes that an equal seed draws."""
    dtype = _type(random)
    classes, features, rows, samples = (int(n) for n in random.integers(1, (9, 5, 7, 9)))
    seed = int(random.integers(1, 10**6))
    noise = random.random(classes) + 0.01
    repeats = bool(random.random() < 0.7) or samples >= classes
    weights, biases = random.standard_normal((classes, features)).astype(dtype), random.standard_normal((classes, 1)).astype(dtype)
    x, labels = random.standard_normal((rows, features)).astype(dtype), random.integers(0, classes, rows)
    v, y = C.input_variable(features, dtype, needs_gradient=True), C.input_variable(classes, dtype, is_sparse=bool(random.random() < 0.5))
    w, b = C.parameter(init=weights, dtype=dtype), C.parameter(init=biases, dtype=dtype)
    loss = C.nce_loss(w, b, v, y, noise, samples, repeats, seed)
    data = {v: x, y: C.Value.one_hot(labels.tolist(), classes, dtype=dtype) if y.is_sparse else np.eye(classes, dtype=dtype)[labels]}
    gradients, value = loss.grad(data, wrt=[v, w, b], outputs=[loss.output])
    drawn = np.asarray(C.random_sample(noise, samples, repeats, seed).eval().toarray()).argmax(1)

    p = _wide(noise / noise.sum())
    nu = samples * p
    included = _wide(C.random_sample_inclusion_frequency(C.constant(noise, dtype=np.float64), samples, repeats).eval()).ravel()
    logits = _wide(x) @ _wide(weights).T + _wide(biases).T
    size = np.abs(_wide(x)) @ np.abs(_wide(weights)).T + np.abs(_wide(biases)).T + np.abs(np.log(nu)) + 1
    own, theirs, factors = logits[np.arange(rows), labels], logits[:, drawn], nu[drawn] / included[drawn]
    right = np.logaddexp(0, np.log(nu[labels]) - own) + np.logaddexp(theirs, np.log(nu[drawn])) @ factors - nu @ np.log(nu)
    slope = np.zeros((rows, classes))
    np.add.at(slope, (slice(None), drawn), factors / (1 + np.exp(np.log(nu[drawn]) - theirs)))
    slope[np.arange(rows), labels] -= 1 / (1 + np.exp(own - np.log(nu[labels])))
    slope_size = size * (np.abs(slope) + np.eye(classes)[labels])
    unit = ROUNDINGS * sum_unit(dtype)
    what = f"nce_loss {np.dtype(dtype)} {classes} classes, {samples} samples of seed {seed}, repeats {repeats}"
    check(what, value, right, unit * (size[np.arange(rows), labels] + size[:, drawn] @ factors + np.abs(nu * np.log(nu)).sum()))
    check(f"{what}: gradient of inputs", gradients[v], slope @ _wide(weights), unit * slope_size @ np.abs(_wide(weights)))
    dense = [np.asarray(gradients[of].toarray() if hasattr(gradients[of], "toarray") else gradients[of]) for of in (w, b)]
    check(f"{what}: gradient of weights", dense[0], slope.T @ _wide(x), unit * slope_size.T @ np.abs(_wide(x)))
    check(f"{what}: gradient of biases", dense[1].reshape(-1), slope.sum(0), unit * slope_size.sum(0))


def hierarchies(random: np.random.Generator) -> None:
    """The probability of a label in two levels, and its gradients."""
    dtype = _type(random)
    labels, features, rows = int(random.integers(1, 30)), int(random.integers(1, 6)), int(random.integers(1, 8))
    groups = None if random.random() < 0.5 else int(random.integers(1, labels + 1))
    x, numbers = random.standard_normal((rows, features)).astype(dtype), random.integers(0, labels, rows)
    v, number = C.input_variable(features, dtype, needs_gradient=True), C.input_variable(1, dtype)
    probability, _, members = C.hierarchical_softmax_layer(v, number, labels, groups)
    parameters = {p.name: p for p in probability.parameters}
    for p in parameters.values():
        p.value = random.standard_normal(p.shape).astype(dtype)
    data = {v: x, number: numbers.reshape(-1, 1).astype(dtype)}
    gradient, value = probability.grad(data, wrt=[v], outputs=[probability.output])
    w1, b1, w2, b2 = (_wide(parameters[f"hsoftmax_{name}"].value) for name in ("w1", "b1", "w2s", "b2s"))
    wide, width = _wide(x), w2.shape[2]
    upper = np.exp(_log_softmax(wide @ w1 + b1))
    right, slopes = np.zeros(rows), np.zeros((rows, features))
    for row, label in enumerate(numbers):
        group, member = divmod(int(label), width)
        lower = np.exp(_log_softmax((wide[row] @ w2[group] + b2[group])[None]))[0]
        right[row] = upper[row, group] * lower[member]
        slopes[row] = right[row] * (w1[:, group] - w1 @ upper[row] + w2[group][:, member] - w2[group] @ lower)
    what = f"hierarchical_softmax_layer {np.dtype(dtype)} {labels} labels in {w2.shape[0]} groups"
    unit = ROUNDINGS * sum_unit(dtype) * (1 + np.abs(wide).sum(1) * max(np.abs(w1).max(), np.abs(w2).max()))
    check(what, value.reshape(-1), right, unit * right)
    check(f"gradient of {what}", gradient, slopes, (unit * right)[:, None] * (np.abs(w1).max() + np.abs(w2).max()) * 4)
    everything = C.splice(*members) if len(members) > 1 else members[0]
    check(f"all labels of {what}", everything.eval({v: x}).sum(1), np.ones(rows), unit)


# ---- cross entropies and distances ----


def cross_entropies(random: np.random.Generator) -> None:
    """Cross entropy with softmax of logits of any size, dense or one-hot targets, and its gradients."""
    dtype = _type(random)
    rows, classes = int(random.choice([1, 2, 5, 40, 300])), int(random.choice([1, 2, 3, 10, 100, 1000]))
    z = (random.standard_normal((rows, classes)) * random.choice([1e-3, 1, 10, 1000]) + random.choice([0, 0, 100])).astype(dtype)
    is_sparse = bool(random.random() < 0.5)
    if is_sparse or random.random() < 0.5:
        chosen = random.integers(0, classes, rows)
        y = np.eye(classes, dtype=dtype)[chosen]
    else:
        y = random.dirichlet(np.ones(classes), rows).astype(dtype)
    v, weight = (C.input_variable(size, dtype, needs_gradient=True) for size in (classes, 1))
    t = C.input_variable(classes, dtype, is_sparse=is_sparse)
    loss = C.cross_entropy_with_softmax(v, t)
    dy = random.standard_normal((rows, 1)).astype(dtype)
    data = {v: z, t: C.Value.one_hot(chosen.tolist(), classes, dtype=dtype) if is_sparse else y, weight: dy}
    gradient, value = (loss * weight).grad(data, wrt=[v], outputs=[loss.output])
    wide, target, up = _wide(z), _wide(y), _wide(dy)
    edge = wide.max(1, keepdims=True)
    level = np.log(np.exp(wide - edge).sum(1, keepdims=True))
    chances = np.exp(wide - edge - level)
    unit = (ROUNDINGS + np.sqrt(classes)) * sum_unit(dtype)
    what = f"cross_entropy_with_softmax {np.dtype(dtype)} {z.shape} sparse {is_sparse}"
    right = edge + level - (wide * target).sum(1, keepdims=True)
    check(what, value, right, unit * (np.abs(edge) + 1 + level + np.abs(wide * target).sum(1, keepdims=True)))
    bound = unit * np.abs(up) * (chances * (1 + np.abs(wide - edge)) + np.abs(target))
    check(f"gradient of {what}", gradient, up * (chances - target), bound)


def binary_cross_entropies(random: np.random.Generator) -> None:
    """Binary cross entropy from 0 to 1, where what is added keeps the logarithms finite."""
    dtype = _type(random)
    shape = (int(random.choice([1, 3, 50])), int(random.choice([1, 4, 400])))
    p = (1 / (1 + np.exp(-random.standard_normal(shape) * random.choice([1, 10, 40])))).astype(dtype)
    y = random.integers(0, 2, shape).astype(dtype) if random.random() < 0.6 else random.random(shape).astype(dtype)
    v, t = C.input_variable(shape[1], dtype, needs_gradient=True), C.input_variable(shape[1], dtype)
    loss = C.binary_cross_entropy(v, t)
    gradient, value = loss.grad({v: p, t: y}, wrt=[v], outputs=[loss.output])
    chance, answer = _wide(p), _wide(y)
    yes, no = chance + 1e-6, 1 - chance + 1e-6
    what = f"binary_cross_entropy {np.dtype(dtype)} {shape}"
    unit = ROUNDINGS * sum_unit(dtype)
    sizes = answer * (np.abs(np.log(yes)) + 1) + (1 - answer) * (np.abs(np.log(no)) + 1)
    check(what, value, -answer * np.log(yes) - (1 - answer) * np.log(no), unit * sizes)
    check(f"gradient of {what}", gradient, (1 - answer) / no - answer / yes, unit * ((1 - answer) / no + answer / yes))


def cosines(random: np.random.Generator) -> None:
    """Cosine similarities of vectors of any length, with negative samples or without."""
    dtype = _type(random)
    rows, size = int(random.choice([1, 2, 5, 60])), int(random.choice([1, 2, 3, 50]))
    far = 30 if dtype is np.float32 else 250
    x, y = ((random.standard_normal((rows, size)) * 10.0 ** random.integers(-far, far + 1)).astype(dtype) for _ in range(2))
    if random.random() < 0.2:
        x[0] = 0
    negatives, shift = int(random.integers(0, 4)), int(random.integers(0, 3))
    a, b = (C.input_variable(size, dtype, needs_gradient=True) for _ in range(2))
    similarity = C.cosine_distance_with_negative_samples(a, b, shift, negatives) if negatives else C.cosine_distance(a, b)
    value = similarity.eval({a: x, b: y}).reshape(rows, -1)
    shifts = [0, *range(shift, shift + negatives)]
    units = [_unit(array) for array in (_wide(x), _wide(y))]
    right = np.stack([(units[0] * np.roll(units[1], -by, 0)).sum(1) for by in shifts], 1)
    what = f"cosines {np.dtype(dtype)} {x.shape} shifts {shifts}"
    unit = ROUNDINGS * sum_unit(dtype)
    check(what, value, right, unit * np.stack([np.abs(units[0] * np.roll(units[1], -by, 0)).sum(1) for by in shifts], 1))
    gradient = similarity.grad({a: x, b: y}, wrt=[a])
    slopes, sizes = np.zeros_like(units[0]), np.zeros_like(units[0])
    for column, by in enumerate(shifts):
        partner = np.roll(units[1], -by, 0)
        slopes += partner - units[0] * right[:, column, None]
        sizes += np.abs(partner) + np.abs(units[0])
    with np.errstate(all="ignore"):
        length = np.where((x == 0).all(1), 1, _length(_wide(x)))[:, None]
        slopes, sizes = slopes / length, sizes / length
        inside = sizes < np.finfo(dtype).max / 100
    check(f"gradient of {what}", np.where(inside, gradient, 0), np.where(inside, slopes, 0), np.where(inside, unit * sizes, 0))


def _length(vectors: Any) -> Any:
    largest = np.abs(vectors).max(1, keepdims=True)
    largest[largest == 0] = 1
    return (np.sqrt(((vectors / largest) ** 2).sum(1, keepdims=True)) * largest)[:, 0]


def _unit(vectors: Any) -> Any:
    length = _length(vectors)
    return vectors / np.where(length == 0, 1, length)[:, None]


TRIALS = (alignments, rankings, edits, contrasts, hierarchies, cross_entropies, binary_cross_entropies, cosines)

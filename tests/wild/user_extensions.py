"""Own functions, own learners and an own source of minibatches, together in one training."""

from __future__ import print_function
import numpy as np
import cntk as C
from cntk import output_variable, user_function, Trainer
from cntk.io import UserMinibatchSource, StreamInformation, MinibatchData
from cntk.learners import UserLearner, sgd, universal, learning_parameter_schedule
from cntk.ops.functions import UserFunction
from cntk.logging import ProgressPrinter
from cntk.train.training_session import *

C.cntk_py.set_fixed_random_seed(4)


# -- functions --------------------------------------------------------------------------------------------------------------------
class MySigmoid(UserFunction):
    def __init__(self, arg, name="MySigmoid"):
        super(MySigmoid, self).__init__([arg], name=name)

    def forward(self, argument, device=None, outputs_to_retain=None):
        sigmoid_x = 1 / (1 + np.exp(-argument))
        return sigmoid_x, sigmoid_x

    def backward(self, state, root_gradients):
        sigmoid_x = state
        return root_gradients * sigmoid_x * (1 - sigmoid_x)

    def infer_outputs(self):
        return [output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

    @staticmethod
    def deserialize(inputs, name, state):
        return MySigmoid(inputs[0], name)


class ScaledDifference(UserFunction):
    """a * x - y, where a is a number that is saved along; two gradients."""

    def __init__(self, x, y, factor=2.0, name="ScaledDifference"):
        super(ScaledDifference, self).__init__([x, y], name=name)
        self.factor = factor
        self.calls = 0

    def forward(self, arguments, device=None, outputs_to_retain=None):
        x, y = arguments
        self.calls += 1
        return None, self.factor * x - y

    def backward(self, state, root_gradients, variables):
        for key in variables:
            if key == self.inputs[0]:
                variables[key] = self.factor * root_gradients
            elif key == self.inputs[1]:
                variables[key] = -root_gradients

    def infer_outputs(self):
        return [output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes, name="difference")]

    def serialize(self):
        return {"factor": self.factor}

    @classmethod
    def deserialize(cls, inputs, name, state):
        return cls(inputs[0], inputs[1], state["factor"], name)

    def clone(self, cloned_inputs):
        return ScaledDifference(cloned_inputs[0], cloned_inputs[1], self.factor, self.name)


class MinAndMax(UserFunction):
    def __init__(self, x, name="MinAndMax"):
        super(MinAndMax, self).__init__([x], as_numpy=True, name=name)

    def forward(self, argument, outputs, device=None, outputs_to_retain=None):
        for k in outputs:
            outputs[k] = argument.min(axis=-1, keepdims=True) if k == self.outputs[0] else argument.max(axis=-1, keepdims=True)
        return None

    def backward(self, state, root_gradients, variables):
        raise NotImplementedError

    def infer_outputs(self):
        axes = self.inputs[0].dynamic_axes
        return [
            output_variable((1,), self.inputs[0].dtype, axes, name="min"),
            output_variable((1,), self.inputs[0].dtype, axes, name="max"),
        ]


# -- learners ---------------------------------------------------------------------------------------------------------------------
class MySgd(UserLearner):
    """Plain SGD in NumPy, with clipping of each value."""

    def __init__(self, parameters, lr_schedule, clip=1.0):
        super(MySgd, self).__init__(parameters, lr_schedule, as_numpy=True)
        self.clip = clip
        self.updates = 0

    def update(self, gradient_values, training_sample_count, sweep_end):
        eta = self.learning_rate() / training_sample_count
        for p, g in gradient_values.items():
            clipped = np.clip(g.asarray(), -self.clip, self.clip)
            new_p = p - eta * C.constant(clipped)
            p.set_value(new_p.eval(as_numpy=False).data)
        self.updates += 1
        return True


def my_rmsprop(parameters, gradients):
    rho = 0.999
    lr = 0.01
    accumulators = [C.constant(1e-6, shape=p.shape, dtype=p.dtype, name="accum") for p in parameters]
    update_funcs = []
    for p, g, a in zip(parameters, gradients, accumulators):
        accum_new = C.assign(a, rho * a + (1 - rho) * g * g)
        update_funcs.append(C.assign(p, p - lr * g / C.sqrt(accum_new + 1e-6)))
    return C.combine(update_funcs)


# -- a source ---------------------------------------------------------------------------------------------------------------------
class SpiralSource(UserMinibatchSource):
    """Points on two spirals, made as they are needed."""

    def __init__(self, f_dim, l_dim, total=240, sweep=120):
        self.f_dim, self.l_dim = f_dim, l_dim
        self.fsi = StreamInformation("features", 0, "dense", np.float32, (f_dim,))
        self.lsi = StreamInformation("labels", 1, "dense", np.float32, (l_dim,))
        self.total, self.sweep = total, sweep
        self.position = 0
        super(SpiralSource, self).__init__()

    def stream_infos(self):
        return [self.fsi, self.lsi]

    def point(self, i):
        label = i % 2
        t = 0.5 + (i * 7 % 60) / 60.0 * 3
        sign = 1 if label else -1
        return [sign * t * np.cos(t), sign * t * np.sin(t)], [1.0 - label, float(label)]

    def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
        n = min(num_samples, self.sweep - self.position % self.sweep, self.total - self.position)
        if n <= 0:
            return {}
        points = [self.point(i) for i in range(self.position, self.position + n)]
        self.position += n
        sweep_end = self.position % self.sweep == 0
        f = C.Value(batch=np.array([p[0] for p in points], dtype=np.float32))
        l = C.Value(batch=np.array([p[1] for p in points], dtype=np.float32))
        return {self.fsi: MinibatchData(f, n, n, sweep_end), self.lsi: MinibatchData(l, n, n, sweep_end)}

    def get_checkpoint_state(self):
        return {"position": self.position}

    def restore_from_checkpoint(self, state):
        self.position = state["position"]


# -- a model of these -------------------------------------------------------------------------------------------------------------
def create_model(features, hidden=6, classes=2):
    W1 = C.parameter((2, hidden), init=C.glorot_uniform(seed=1), name="W1")
    b1 = C.parameter((hidden,), init=0, name="b1")
    h = user_function(MySigmoid(C.times(features, W1) + b1, name="hidden"))
    W2 = C.parameter((hidden, classes), init=C.glorot_uniform(seed=2), name="W2")
    W3 = C.parameter((hidden, classes), init=C.glorot_uniform(seed=3), name="W3")
    return user_function(ScaledDifference(C.times(h, W2), C.times(h, W3), 1.5, name="z"))


def source_of(source, streams):
    return dict(zip(streams, source.stream_infos()))


for kind in ("own", "universal", "built in"):
    features, labels = C.input_variable(2, name="features"), C.input_variable(2, name="labels")
    z = create_model(features)
    loss, error = C.cross_entropy_with_softmax(z, labels), C.classification_error(z, labels)
    rate = (
        learning_parameter_schedule([0.5, 0.25], minibatch_size=1, epoch_size=120)
        if kind == "own"
        else learning_parameter_schedule(0.5, minibatch_size=1)
    )
    if kind == "own":
        learner = MySgd(z.parameters, rate)
    elif kind == "universal":
        learner = universal(my_rmsprop, z.parameters)
    else:
        learner = sgd(z.parameters, rate)
    trainer = Trainer(z, (loss, error), [learner])
    source = SpiralSource(2, 2)
    streams = {features: source.fsi, labels: source.lsi}
    rows = []
    while True:
        data = source.next_minibatch(16)
        if not data:
            break
        trainer.train_minibatch({v: data[s] for v, s in streams.items()})
        rows.append((trainer.previous_minibatch_loss_average, trainer.previous_minibatch_sample_count))
    print(kind, len(rows), "minibatches of", sorted(set(n for _, n in rows)), "loss %.3f -> %.3f" % (rows[0][0], rows[-1][0]))
    if kind == "own":
        print("  updates", learner.updates, "rate", learner.learning_rate())
    print("  |W1| %.3f" % np.abs(z.parameters[0].value).sum())

# the session asks the source by itself, and keeps where it is
features, labels = C.input_variable(2), C.input_variable(2)
z = create_model(features)
learner = sgd(z.parameters, learning_parameter_schedule(0.5, minibatch_size=1))
trainer = Trainer(
    z, (C.cross_entropy_with_softmax(z, labels), C.classification_error(z, labels)), [learner], [ProgressPrinter(5, tag="train")]
)
source = SpiralSource(2, 2, total=200, sweep=100)
training_session(
    trainer=trainer,
    mb_source=source,
    mb_size=20,
    max_samples=160,
    model_inputs_to_streams={features: source.streams.features, labels: source.streams["labels"]},
    progress_frequency=100,
).train()
print("session", trainer.total_number_of_samples_seen, source.get_checkpoint_state())

# two outputs of one function
x = C.input_variable(3)
both = C.user_function(MinAndMax(x * 2))
low, high = both.outputs
print("outputs", low.name, high.name, low.shape, len(both.outputs))
spread = C.reduce_sum(high - low)
print("spread", spread.eval({x: np.array([[1, 2, 4], [0, 5, -1]], dtype=np.float32)}).tolist())

# saved with the model
z.save("own.model")
restored = C.load_model("own.model")
data = np.array([[0.5, -1], [2, 1]], dtype=np.float32)
print("restored", np.allclose(restored.eval({restored.arguments[0]: data}), z.eval({features: data})))
print("own functions", len(C.logging.graph.depth_first_search(restored, lambda f: f.name in ("hidden", "z"))))
clone = z.clone(C.CloneMethod.freeze, {features: C.input_variable(2)})
print("clone", len(clone.parameters), len(clone.constants), np.allclose(clone.eval({clone.arguments[0]: data}), z.eval({features: data})))

# native functions and gradients by hand
p = C.parameter((2,), init=np.array([0.3, -0.2], dtype=np.float32))
f = C.user_function(ScaledDifference(C.user_function(MySigmoid(p * 1)), p * p, 3.0))
print("gradient", np.round(C.reduce_sum(f).grad({}, wrt=[p]), 3).tolist())

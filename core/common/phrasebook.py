"""What the names of other libraries are called here; errors about such a name say it."""

from __future__ import annotations

from collections.abc import Mapping

_TRAINING = "C.Trainer(model, loss, [learner]).train_minibatch({x: X, y: Y}) and loss.train((X, Y), parameter_learners=[learner]) train"
_DEVICE = "C.device.try_set_default_device(C.device.gpu(0)) chooses where everything is computed, eval(..., device=...) for one call"
_VALUE = "a function has values for data only, which f.eval({x: X}) computes as NumPy arrays"
_LAYERS = "layers are in C.layers: Dense, Convolution2D, MaxPooling, BatchNormalization, Embedding, LSTM in a Recurrence or Fold"
_LEARNERS = "learners are functions such as C.sgd, C.momentum_sgd and C.adam, which take a model's parameters and a learning rate"

METHODS: Mapping[str, str] = {
    "backward()": "loss.grad({x: X, y: Y}, wrt=loss.parameters) gives gradients; " + _TRAINING,
    "clone()": "the method is 'share' for a copy with the same parameters, 'clone' for one with its own, 'freeze' for one with constants",
    "compile": _TRAINING,
    "cpu": "parameter.value and f.eval give NumPy arrays",
    "cuda": _DEVICE,
    "detach": "C.stop_gradient(x) lets no gradient through; parameter.value is an array",
    "fit": _TRAINING,
    "flatten": "C.reshape(x, (-1,)) is a vector of each sample",
    "item": "float(array[0]) is the number in a NumPy array; " + _VALUE,
    "load_state_dict": "C.load_model(path) loads a model, model.restore(path) its values alone",
    "mean": "C.reduce_mean(x, axis)",
    "numpy": "parameter.value is a NumPy array; " + _VALUE,
    "permute": "C.transpose(x, permutation) of the axes behind the batch axis",
    "predict": "model.eval({x: X}) computes, C.eval.Predictor(model) for tables and files",
    "requires_grad": "C.input_variable(shape, needs_gradient=True); parameters always have gradients",
    "reshape": "C.reshape(x, shape), without the batch axis",
    "size": "x.shape is the shape of a sample, without the batch axis",
    "squeeze": "C.squeeze(x)",
    "state_dict": "model.save(path) saves; {p.name: p.value for p in model.parameters} are the values",
    "step": "the learner steps in Trainer.train_minibatch; " + _TRAINING,
    "sum": "C.reduce_sum(x, axis)",
    "summary": "print(C.logging.summary(model)) lists layers with shapes and parameters, C.logging.plot(model, 'model.svg') draws them",
    "T": "C.transpose(x, (1, 0))",
    "to": _DEVICE + "; C.cast(x, dtype) converts",
    "train()": "the data come first: loss.train((X, Y), parameter_learners=[learner]). There is no training mode to set: training and "
    "evaluation know how layers such as Dropout behave",
    "transpose": "C.transpose(x, permutation)",
    "trainable_variables": "model.parameters",
    "trainable_weights": "model.parameters",
    "unsqueeze": "C.expand_dims(x, axis)",
    "view": "C.reshape(x, shape), without the batch axis",
    "weights": "model.parameters; a layer has W and b",
    "zero_grad": "gradients are those of one minibatch and need no resetting; " + _TRAINING,
}
"""Methods and attributes of models and tensors; with ``()`` where there is one of that name, which takes other arguments."""

NAMES: Mapping[str, str] = {
    "Adam": _LEARNERS,
    "BatchNorm1d": "C.layers.BatchNormalization(map_rank=None)",
    "BatchNorm2d": "C.layers.BatchNormalization(map_rank=1)",
    "Conv1D": "C.layers.Convolution1D(filter_shape, num_filters), on axes (channels, length)",
    "Conv2D": "C.layers.Convolution2D(filter_shape, num_filters), on axes (channels, height, width)",
    "Conv2d": "C.layers.Convolution2D(filter_shape, num_filters), on axes (channels, height, width)",
    "CrossEntropyLoss": "C.cross_entropy_with_softmax(output, target), where the target is a one-hot vector",
    "Flatten": "Dense takes inputs of any shape; C.reshape(x, (-1,)) makes vectors",
    "Input": "C.input_variable(shape), without the batch axis; C.sequence.input_variable for sequences",
    "Linear": "C.layers.Dense(shape)",
    "MSELoss": "C.squared_error(output, target)",
    "MaxPool2D": "C.layers.MaxPooling(filter_shape, strides)",
    "MaxPool2d": "C.layers.MaxPooling(filter_shape, strides)",
    "Model": "C.combine([f, g]) is a function of several outputs; C.layers.Sequential chains layers",
    "Module": "a model is a Python function or C.layers.Sequential, applied to input variables",
    "ReLU": "C.relu",
    "SGD": "C.sgd(model.parameters, learning_rate)",
    "Sequential": "C.layers.Sequential([layer, layer])",
    "Softmax": "C.softmax",
    "Tensor": "data are NumPy arrays; C.input_variable and C.parameter are what graphs begin with",
    "cat": "C.splice(x, y, axis=-1)",
    "concat": "C.splice(x, y, axis=-1)",
    "concatenate": "C.splice(x, y, axis=-1)",
    "cuda": _DEVICE,
    "einsum": "C.times(x, y), C.times_transpose(x, y), C.reduce_sum",
    "keras": _LAYERS,
    "matmul": "C.times(x, W), or x @ W",
    "models": "C.load_model(path) loads a model",
    "nn": _LAYERS,
    "no_grad": "eval computes without gradients; C.stop_gradient(x) lets none through",
    "optim": _LEARNERS,
    "optimizers": _LEARNERS,
    "sum": "C.reduce_sum(x, axis)",
    "tensordot": "C.times(x, y, output_rank=...)",
    "where": "C.element_select(condition, x, y)",
}
"""Names of modules, layers, losses, learners and functions."""


def advice(phrases: Mapping[str, str], name: str) -> str:
    """What to write here for another library's name, as the end of an error; empty for a name that is not known."""
    meant = phrases.get(name)
    return "" if meant is None else f"; {meant}"


def lacking(message: str, phrases: Mapping[str, str], name: str) -> AttributeError:
    """The error that there is no *name*, with what to write for it; else Python looks for a name that is spelled alike."""
    meant = advice(phrases, name)
    return AttributeError(message + meant, name=name) if meant else AttributeError(message)

"""A backend for a framework of layers: one class that says variable, placeholder, dot, function ... in terms of CNTK.

It keeps what it knows of shapes in attributes of its own, runs forward and backward by hand, and updates variables with assign.
"""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

from collections import defaultdict
from contextlib import contextmanager
import warnings

import numpy as np
import cntk as C

C.set_global_option("align_axis", 1)

b_any = any
dev = C.device.cpu()
C.device.try_set_default_device(dev)
_FLOATX = "float32"
_EPSILON = 1e-7
_LEARNING_PHASE_VALUE = -1
_LEARNING_PHASE = C.constant(shape=(), dtype=np.float32, value=1.0, name="_learning_phase")
_UID_PREFIXES = defaultdict(int)
C.cntk_py.set_fixed_random_seed(1337)


def learning_phase():
    return _LEARNING_PHASE if _LEARNING_PHASE_VALUE not in {0, 1} else _LEARNING_PHASE_VALUE


def set_learning_phase(value):
    global _LEARNING_PHASE_VALUE
    _LEARNING_PHASE_VALUE = value
    _LEARNING_PHASE.value = np.asarray(value)


def clear_session():
    _LEARNING_PHASE.value = np.asarray(1.0)


def get_uid(prefix=""):
    _UID_PREFIXES[prefix] += 1
    return _UID_PREFIXES[prefix]


def _convert_string_dtype(dtype):
    if dtype == "float32":
        return np.float32
    if dtype == "float64":
        return np.float64
    if dtype == "float16":
        return np.float16
    return np.float32


def _convert_dtype_string(dtype):
    return {np.float32: "float32", np.float64: "float64"}.get(dtype)


def is_tensor(x):
    return isinstance(x, (C.variables.Constant, C.variables.Variable, C.variables.Parameter, C.ops.functions.Function))


def is_keras_tensor(x):
    if not is_tensor(x):
        raise ValueError("not a symbolic tensor: %s" % type(x))
    return hasattr(x, "_keras_history")


def name_scope(name):
    @contextmanager
    def scope():
        yield name

    return scope()


# -- variables, placeholders, constants ---------------------------------------------------------------------------------------------
def variable(value, dtype=None, name=None, constraint=None):
    if dtype is None:
        dtype = _FLOATX
    if isinstance(value, C.variables.Constant) or isinstance(value, C.variables.Parameter):
        value = value.value
    if not isinstance(value, np.ndarray):
        value = np.array(value)
    if value.dtype != _convert_string_dtype(dtype):
        value = value.astype(_convert_string_dtype(dtype))
    v = C.parameter(shape=value.shape, init=value, dtype=_convert_string_dtype(dtype), name=name or "")
    v._keras_shape = v.shape
    v._uses_learning_phase = False
    v.constraint = constraint
    return v


def constant(value, dtype=None, shape=None, name=None):
    shape = shape or ()
    np_value = value * np.ones(shape)
    const = C.constant(np_value, dtype=_convert_string_dtype(dtype or _FLOATX), name=name or "const%d" % get_uid("const"))
    const._keras_shape = const.shape
    const._uses_learning_phase = False
    return const


def placeholder(shape=None, ndim=None, dtype=None, sparse=False, name=None, dynamic_axis_num=1):
    if not shape and ndim:
        shape = tuple([None for _ in range(ndim)])
    dynamic_dimension = C.FreeDimension
    cntk_shape = [dynamic_dimension if s is None else s for s in shape]
    cntk_shape = tuple(cntk_shape)
    if dynamic_axis_num > len(cntk_shape):
        raise ValueError("too many dynamic axes for %s" % str(shape))
    if name is None:
        name = ""
    cntk_shape = cntk_shape[dynamic_axis_num:]
    x = C.input(shape=cntk_shape, dtype=_convert_string_dtype(dtype or _FLOATX), is_sparse=sparse, name=name)
    x._keras_shape = shape
    x._uses_learning_phase = False
    x._cntk_placeholder = True
    return x


def is_placeholder(x):
    return hasattr(x, "_cntk_placeholder") and x._cntk_placeholder


def shape(x):
    shape = list(int_shape(x))
    num_dynamic = _get_dynamic_axis_num(x)
    non_dyn_shape = []
    for i in range(len(x.shape)):
        if shape[i + num_dynamic] is None:
            non_dyn_shape.append(x.shape[i])
        else:
            non_dyn_shape.append(shape[i + num_dynamic])
    return shape[:num_dynamic] + non_dyn_shape


def int_shape(x):
    if hasattr(x, "_keras_shape"):
        return x._keras_shape
    shape = x.shape
    if hasattr(x, "dynamic_axes"):
        dynamic_shape = [None for _ in x.dynamic_axes]
        shape = tuple(dynamic_shape) + shape
    return shape


def _get_dynamic_axis_num(x):
    if hasattr(x, "dynamic_axes"):
        return len(x.dynamic_axes)
    return 0


def ndim(x):
    return len(int_shape(x))


def dtype(x):
    return _convert_dtype_string(x.dtype)


def eval(x):
    if isinstance(x, C.cntk_py.Function):
        return x.eval()
    elif isinstance(x, (C.variables.Constant, C.variables.Parameter)):
        return x.value
    raise ValueError("eval of %s" % type(x))


def get_value(x):
    if isinstance(x, C.variables.Parameter) or isinstance(x, C.variables.Constant):
        return x.value
    return eval(x)


def set_value(x, value):
    if isinstance(x, C.variables.Parameter) or isinstance(x, C.variables.Constant):
        if isinstance(value, (float, int)):
            value = np.full(x.shape, value, dtype=np.float32)
        x.value = value
    else:
        raise NotImplementedError


def batch_set_value(tuples):
    for x, value in tuples:
        if isinstance(x, C.variables.Parameter) is False:
            raise NotImplementedError
        x.value = np.asarray(value, dtype=x.dtype)


def _reduce_on_axis(x, axis, reduce_fun_name):
    if isinstance(axis, list):
        for a in axis:
            if isinstance(a, C.Axis) and a != C.Axis.default_batch_axis() and hasattr(C.sequence, reduce_fun_name):
                x = getattr(C.sequence, reduce_fun_name)(x, a)
            else:
                x = getattr(C, reduce_fun_name)(x, a)
    else:
        x = getattr(C, reduce_fun_name)(x, axis)
    return x


def _normalize_axis(axis, x):
    shape = int_shape(x)
    ndim = len(shape)
    nones = _get_dynamic_axis_num(x)
    if nones > ndim:
        raise ValueError("%s axes of which %s are dynamic" % (ndim, nones))
    if isinstance(axis, tuple):
        _axis = list(axis)
    elif isinstance(axis, int):
        _axis = [axis]
    elif isinstance(axis, list):
        _axis = list(axis)
    else:
        _axis = axis
    if isinstance(_axis, list):
        for i, a in enumerate(_axis):
            if a is not None and a < 0:
                _axis[i] = a % ndim
            if _axis[i] is not None:
                if _axis[i] < nones:
                    _axis[i] = x.dynamic_axes[_axis[i]]
                else:
                    _axis[i] -= nones
    else:
        _axis = C.Axis.all_axes() if _axis is None else _axis
    return _axis


def _reshape_dummy_dim(x, axis):
    shape = list(x.shape)
    _axis = [_ + len(shape) if _ < 0 else _ for _ in axis]
    if shape.count(C.InferredDimension) > 1 or shape.count(C.FreeDimension) > 1:
        result = x
        for index in sorted(_axis, reverse=True):
            result = C.reshape(result, shape=(), begin_axis=index, end_axis=index + 1)
        return result
    for index in sorted(_axis, reverse=True):
        del shape[index]
    shape = [C.InferredDimension if _ == C.FreeDimension else _ for _ in shape]
    return C.reshape(x, shape)


def _remove_dims(x, axis, keepdims=False):
    if keepdims is False and isinstance(axis, list):
        reduce_axes = []
        for a in axis:
            if isinstance(a, C.Axis) is False:
                reduce_axes.append(a)
        return _reshape_dummy_dim(x, reduce_axes)
    if isinstance(axis, list):
        has_seq = False
        for a in axis:
            if isinstance(a, C.Axis):
                has_seq = True
                break
        if has_seq:
            nones = _get_dynamic_axis_num(x)
            x = expand_dims(x, nones)
    return x


# -- algebra ------------------------------------------------------------------------------------------------------------------------
def dot(x, y):
    if len(x.shape) > 2 or len(y.shape) > 2:
        y_shape = int_shape(y)
        if len(y_shape) > 2:
            permutation = [len(y_shape) - 2] + list(range(len(y_shape) - 2)) + [len(y_shape) - 1]
            y = C.transpose(y, perm=permutation)
        return C.times(x, y, len(y_shape) - 1)
    return C.times(x, y)


def batch_dot(x, y, axes=None):
    x_shape, y_shape = int_shape(x), int_shape(y)
    if axes is None:
        axes = [len(x_shape) - 1, len(y_shape) - 2]
    if len(x_shape) == 2 and len(y_shape) == 2:
        if axes[0] == axes[1]:
            result = sum(x * y, axis=axes[0], keepdims=True)
            return result if axes[0] == 1 else transpose(result)
        return sum(x * transpose(y), axis=axes[0], keepdims=True)
    if len(y_shape) == 2:
        y = expand_dims(y)
    normalized_axis = [_normalize_axis(axes[0], x)[0], _normalize_axis(axes[1], y)[0]]
    i = normalized_axis[0]
    while i < len(x.shape) - 1:
        x = C.swapaxes(x, i, i + 1)
        i += 1
    i = normalized_axis[1]
    while i > 0:
        y = C.swapaxes(y, i, i - 1)
        i -= 1
    result = C.times(x, y, output_rank=(len(y.shape) - 1) if len(y.shape) > 1 else 1)
    if len(y_shape) == 2:
        result = squeeze(result, -1)
    return result


def transpose(x):
    return C.swapaxes(x, 0, 1)


def permute_dimensions(x, pattern):
    dims = len(int_shape(x))
    num_dynamic_axis = _get_dynamic_axis_num(x)
    current_layout = tuple([i for i in range(dims)])
    if num_dynamic_axis > 0 and pattern[:num_dynamic_axis] != current_layout[:num_dynamic_axis]:
        raise ValueError("dynamic axes stay where they are: %s" % str(pattern))
    axis = list(pattern)
    axis = axis[num_dynamic_axis:]
    axis = [i - num_dynamic_axis for i in axis]
    return C.transpose(x, axis)


def reshape(x, shape):
    shape = tuple([C.InferredDimension if _ == C.FreeDimension else _ for _ in shape])
    if isinstance(x, C.variables.Parameter):
        return C.reshape(x, shape)
    num_dynamic_axis = _get_dynamic_axis_num(x)
    if num_dynamic_axis == 1 and len(shape) > 0 and shape[0] == -1:
        shape = tuple([C.InferredDimension if _ == -1 else _ for _ in shape[1:]])
        return C.ops.reshape(x, shape)
    i = num_dynamic_axis
    new_shape = list(shape)[i:]
    new_shape = [C.InferredDimension if _ is None else _ for _ in new_shape]
    return C.reshape(x, new_shape)


def expand_dims(x, axis=-1):
    shape = list(int_shape(x))
    nones = _get_dynamic_axis_num(x)
    index = axis if axis >= 0 else len(shape) + 1
    shape.insert(index, 1)
    new_shape = shape[nones:]
    new_shape = tuple([C.InferredDimension if _ is None else _ for _ in new_shape])
    result = C.reshape(x, new_shape)
    if index < nones:
        result._keras_shape = shape
    return result


def squeeze(x, axis):
    if isinstance(axis, tuple):
        axis = list(axis)
    if not isinstance(axis, list):
        axis = [axis]
    shape = list(int_shape(x))
    _axis = []
    for _ in axis:
        if isinstance(_, int):
            _axis.append(_ if _ >= 0 else _ + len(shape))
    if len(_axis) == 0:
        return x
    nones = _get_dynamic_axis_num(x)
    for _ in sorted(_axis, reverse=True):
        del shape[_]
    new_shape = shape[nones:]
    new_shape = tuple([C.InferredDimension if _ == C.FreeDimension else _ for _ in new_shape])
    return C.reshape(x, new_shape)


def flatten(x):
    return reshape(x, (-1,))


def batch_flatten(x):
    return C.reshape(x, (int(np.prod(x.shape)),))


def concatenate(tensors, axis=-1):
    if len(tensors) == 0:
        return None
    axis = [axis]
    axis = _normalize_axis(axis, tensors[0])
    return C.splice(*tensors, axis=axis[0])


def stack(x, axis=0):
    return concatenate([expand_dims(t, axis) for t in x], axis=axis)


def sum(x, axis=None, keepdims=False):
    axis = _normalize_axis(axis, x)
    output = _reduce_on_axis(x, axis, "reduce_sum")
    return _remove_dims(output, axis, keepdims)


def mean(x, axis=None, keepdims=False):
    axis = _normalize_axis(axis, x)
    output = _reduce_on_axis(x, axis, "reduce_mean")
    return _remove_dims(output, axis, keepdims)


def max(x, axis=None, keepdims=False):
    axis = _normalize_axis(axis, x)
    output = _reduce_on_axis(x, axis, "reduce_max")
    return _remove_dims(output, axis, keepdims)


def any(x, axis=None, keepdims=False):
    reduce_result = sum(C.not_equal(x, 0), axis, keepdims=keepdims)
    return C.greater(reduce_result, 0)


def argmax(x, axis=-1):
    axis = [axis]
    axis = _normalize_axis(axis, x)
    output = C.ops.argmax(x, axis=axis[0])
    return _reshape_dummy_dim(output, axis)


def var(x, axis=None, keepdims=False):
    m = mean(x, axis, keepdims=True)
    return mean(C.square(x - m), axis, keepdims=keepdims)


def l2_normalize(x, axis=None):
    axis = [axis]
    axis = _normalize_axis(axis, x)
    norm = C.sqrt(C.reduce_sum(C.square(x), axis=axis[0]))
    return x / norm


def clip(x, min_value, max_value):
    return C.clip(x, min_value, max_value)


def relu(x, alpha=0.0, max_value=None):
    if alpha != 0.0:
        negative_part = C.relu(-x)
    x = C.relu(x)
    if max_value is not None:
        x = C.clip(x, 0.0, max_value)
    if alpha != 0.0:
        x -= alpha * negative_part
    return x


def softmax(x, axis=-1):
    return C.softmax(x, axis=axis)


def dropout(x, level, noise_shape=None, seed=None):
    return C.dropout(x, level)


def hard_sigmoid(x):
    x = (0.2 * x) + 0.5
    return C.clip(x, 0.0, 1.0)


def one_hot(indices, num_classes):
    return C.one_hot(indices, num_classes)


def gather(reference, indices):
    return C.ops.gather(reference, indices)


def switch(condition, then_expression, else_expression):
    ndim_cond = ndim(condition)
    ndim_expr = ndim(then_expression)
    if ndim_cond > ndim_expr:
        raise ValueError("the condition has more axes")
    elif ndim_cond < ndim_expr:
        shape_expr = int_shape(then_expression)
        for i in range(ndim_expr - ndim_cond):
            condition = expand_dims(condition)
    return C.element_select(condition, then_expression, else_expression)


def in_train_phase(x, alt, training=None):
    if training is None:
        training = learning_phase()
        uses_learning_phase = True
    else:
        uses_learning_phase = False
    if isinstance(training, (int, float)) and training == 1:
        if callable(x) and isinstance(x, C.cntk_py.Function) is False:
            return x()
        return x
    elif isinstance(training, (int, float)) and training == 0:
        if callable(alt) and isinstance(alt, C.cntk_py.Function) is False:
            return alt()
        return alt
    if callable(x) and isinstance(x, C.cntk_py.Function) is False:
        x = x()
    if callable(alt) and isinstance(alt, C.cntk_py.Function) is False:
        alt = alt()
    _LEARNING_PHASE.value = np.asarray(1.0)
    result = C.element_select(training, x, alt)
    if uses_learning_phase:
        result._uses_learning_phase = True
    return result


def categorical_crossentropy(target, output, from_logits=False):
    if from_logits:
        result = C.cross_entropy_with_softmax(output, target)
        return C.reshape(result, ())
    output /= C.reduce_sum(output, axis=-1)
    output = C.clip(output, _EPSILON, 1.0 - _EPSILON)
    return -sum(target * C.log(output), axis=-1)


def binary_crossentropy(target, output):
    output = C.clip(output, _EPSILON, 1.0 - _EPSILON)
    return -target * C.log(output) - (1.0 - target) * C.log(1.0 - output)


def conv2d(x, kernel, strides=(1, 1), padding="valid"):
    x = C.transpose(x, (2, 0, 1))
    kernel = C.transpose(kernel, (3, 2, 0, 1))
    x = C.convolution(kernel, x, strides, auto_padding=[False, padding == "same", padding == "same"])
    return C.transpose(x, (1, 2, 0))


def pool2d(x, pool_size, strides=(1, 1), padding="valid", pool_mode="max"):
    x = C.transpose(x, (2, 0, 1))
    x = C.pooling(x, C.MAX_POOLING if pool_mode == "max" else C.AVG_POOLING, pool_size, strides, auto_padding=[padding == "same"])
    return C.transpose(x, (1, 2, 0))


def batch_normalization(x, mean, var, beta, gamma, epsilon=1e-3):
    return C.element_times((x - mean) / C.sqrt(var + epsilon), gamma) + beta


def rnn(step_function, inputs, initial_states):
    """Unrolled over the static axis of time."""
    shape = int_shape(inputs)
    time_step = shape[1]
    outputs, states = [], initial_states
    for i in range(time_step):
        current = C.ops.slice(inputs, 0, i, i + 1)
        current = squeeze(current, 1)
        output, new_states = step_function(current, tuple(states))
        if getattr(output, "_uses_learning_phase", False):
            raise ValueError
        outputs.append(output)
        states = new_states
    final_output = expand_dims(outputs[0], 1)
    last_output = outputs[0]
    for i in range(1, len(outputs)):
        last_output = outputs[i]
        output_slice = expand_dims(last_output, 1)
        final_output = C.splice(final_output, output_slice, axis=0)
    return last_output, final_output, states


# -- updates, gradients, functions ------------------------------------------------------------------------------------------------
def update(x, new_x):
    return C.assign(x, new_x)


def update_add(x, increment):
    result = x + increment
    return C.assign(x, result)


def moving_average_update(variable, value, momentum):
    return C.assign(variable, variable * momentum + value * (1.0 - momentum))


grad_parameter_dict = {}


def gradients(loss, variables):
    """Placeholders for gradients, which the function that trains replaces by the learner."""
    if isinstance(variables, list) is False:
        variables = [variables]
    grads = []
    for v in variables:
        g = C.constant(0, shape=v.shape, name="keras_grad_placeholder")
        grads.append(g)
        grad_parameter_dict[g] = v
    return grads


class Function(object):
    def __init__(self, inputs, outputs, updates=[], **kwargs):
        self.placeholders = inputs
        self.trainer = None
        self.unrelated_updates = None
        self.updates = updates
        if len(updates) > 0:
            assert len(outputs) > 0
            self.loss = outputs[0]
            u_ops = []
            unrelated_updates = []
            for update in updates:
                if isinstance(update, tuple):
                    if len(update) != 2:
                        raise NotImplementedError
                    u = C.assign(update[0], update[1])
                else:
                    u = update
                if len(u.arguments) == 0:
                    u_ops.append(u)
                else:
                    unrelated_updates.append(u)
            update_func = C.combine([u.output for u in u_ops]) if u_ops else None
            grads = update_func.find_all_with_name("keras_grad_placeholder") if update_func is not None else []
            u_list, p_list = [], []
            for g in grads:
                if g in grad_parameter_dict:
                    p_list.append(grad_parameter_dict[g])
                    u_list.append(g)
                else:
                    raise ValueError("no gradient of %s" % g)
            if len(u_list) > 0:
                learner = C.cntk_py.universal_learner(p_list, u_list, update_func)
                criterion = (outputs[0], outputs[1]) if len(outputs) > 1 else (outputs[0],)
                self.trainer = C.trainer.Trainer(outputs[0], criterion, [learner])
                self.trainer_output = tuple([f.output for f in criterion])
            elif len(u_ops) > 0:
                unrelated_updates.extend(u_ops)
            if len(unrelated_updates) > 0:
                self.unrelated_updates = C.combine([_.output for _ in unrelated_updates])

        if self.trainer is None:
            self.metrics_outputs = [f.output for f in outputs]
            self.metrics_func = C.combine(self.metrics_outputs)
        else:
            self.metrics_outputs = [f.output for f in outputs[2:]]
            self.metrics_func = C.combine(self.metrics_outputs) if len(self.metrics_outputs) > 0 else None

    @staticmethod
    def _is_input_shape_compatible(input, placeholder):
        if hasattr(input, "shape") and hasattr(placeholder, "shape"):
            num_dynamic = _get_dynamic_axis_num(placeholder)
            input_shape = input.shape[num_dynamic:]
            placeholder_shape = placeholder.shape
            for i, p in zip(input_shape, placeholder_shape):
                if i != p and p != C.InferredDimension and p != C.FreeDimension:
                    return False
        return True

    def __call__(self, inputs):
        global _LEARNING_PHASE_VALUE
        assert isinstance(inputs, (list, tuple))
        feed_dict = {}
        for tensor, value in zip(self.placeholders, inputs):
            if hasattr(value, "dtype") and value.dtype != np.float32 and value.dtype != np.float64:
                value = value.astype(np.float32)
            if tensor is _LEARNING_PHASE:
                _LEARNING_PHASE_VALUE = value
                _LEARNING_PHASE.value = np.asarray(value)
            else:
                if not self._is_input_shape_compatible(value, tensor):
                    raise ValueError("%s does not fit %s" % (value.shape, tensor.shape))
                feed_dict[tensor] = value

        updated = []
        if self.trainer is not None:
            input_dict = {}
            for argument in self.loss.arguments:
                if argument in feed_dict:
                    input_dict[argument] = feed_dict[argument]
                else:
                    raise ValueError("no value for %s" % argument.name)
            result = self.trainer.train_minibatch(input_dict, self.trainer_output)
            assert len(result) == 2
            outputs = result[1]
            for o in self.trainer_output:
                updated.append(outputs[o])

        if self.metrics_func is not None:
            input_dict = {}
            for argument in self.metrics_func.arguments:
                if argument in feed_dict:
                    input_dict[argument] = feed_dict[argument]
                else:
                    raise ValueError("no value for %s" % argument.name)
            output_values = self.metrics_func.eval(input_dict, as_numpy=False)
            if isinstance(output_values, dict):
                for o in self.metrics_outputs:
                    value = output_values[o]
                    v = value.asarray()
                    updated.append(v)
            else:
                v = output_values.asarray()
                for o in self.metrics_outputs:
                    updated.append(v)

        if self.unrelated_updates is not None:
            input_dict = {}
            for argument in self.unrelated_updates.arguments:
                if argument in feed_dict:
                    input_dict[argument] = feed_dict[argument]
                else:
                    raise ValueError("no value for %s" % argument.name)
            self.unrelated_updates.eval(input_dict, as_numpy=False)
        return updated


def function(inputs, outputs, updates=[], **kwargs):
    return Function(inputs, outputs, updates=updates, **kwargs)


# -- three optimisers and a network, as the framework above would ask for them ---------------------------------------------------
class SGD(object):
    def __init__(self, lr=0.1, momentum=0.9):
        self.lr = variable(lr, name="lr")
        self.iterations = variable(0.0, name="iterations")
        self.momentum = variable(momentum)

    def get_updates(self, loss, params):
        grads = gradients(loss, params)
        updates = [update_add(self.iterations, 1.0)]
        for p, g in zip(params, grads):
            m = variable(np.zeros(int_shape(p)))
            v = self.momentum * m - self.lr * g
            updates.append(update(m, v))
            updates.append((p, p + v))
        return updates


class RMSprop(SGD):
    def get_updates(self, loss, params):
        grads = gradients(loss, params)
        updates = []
        for p, g in zip(params, grads):
            a = variable(np.zeros(int_shape(p)))
            new_a = 0.9 * a + 0.1 * C.square(g)
            updates.append(update(a, new_a))
            updates.append(update(p, p - self.lr * g / (C.sqrt(new_a) + _EPSILON)))
        return updates


def main():
    rng = np.random.RandomState(3)
    X = rng.rand(24, 6).astype("float32")
    Y = np.eye(3, dtype="float32")[(X.sum(axis=1) * 2).astype(int) % 3]

    x = placeholder(shape=(None, 6), name="x")
    y = placeholder(shape=(None, 3), name="y")
    print("placeholder", int_shape(x), ndim(x), dtype(x), is_tensor(x), is_placeholder(x), x.shape, len(x.dynamic_axes))
    W1, b1 = variable(rng.uniform(-0.5, 0.5, (6, 8)), name="W1"), variable(np.zeros(8), name="b1")
    W2, b2 = variable(rng.uniform(-0.5, 0.5, (8, 3)), name="W2"), variable(np.zeros(3), name="b2")
    hidden = relu(dot(x, W1) + b1, alpha=0.1)
    logits = dot(hidden, W2) + b2
    predictions = softmax(logits)
    loss = mean(categorical_crossentropy(y, predictions))
    accuracy = mean(C.equal(argmax(predictions), argmax(y)))
    print("shapes", int_shape(hidden), int_shape(predictions), loss.shape)

    for optimizer in (SGD(0.05), RMSprop(0.01)):
        updates = optimizer.get_updates(loss, [W1, b1, W2, b2])
        train = function([x, y], [loss, accuracy, predictions], updates=updates)
        for i in range(3):
            outs = train([X, Y])
            print(
                type(optimizer).__name__,
                i,
                ["%.4f" % np.mean(o) for o in outs[:2]],
                outs[2].shape if hasattr(outs[2], "shape") else np.shape(outs[2]),
            )
        if type(optimizer) is SGD:
            print("  iterations", get_value(optimizer.iterations).tolist())

    # prediction, and a layer with state of its own
    predict = function([x], [predictions])
    print("predict", np.shape(predict([X[:5]])[0]), "%.4f" % np.std(predict([X])[0]))
    moving = variable(np.zeros(6), name="moving")
    batch_mean = C.reduce_mean(x, axis=C.Axis.default_batch_axis())
    keep = function([x], [batch_mean], updates=[moving_average_update(moving, C.reshape(batch_mean, (6,)), 0.9)])
    for i in range(2):
        keep([X])
    print("moving", np.round(get_value(moving), 4).sum().round(3))

    # the learning phase as a constant whose value changes
    out = in_train_phase(x * 2, x * 3)
    for phase in (1.0, 0.0):
        f = function([x, _LEARNING_PHASE], [out])
        print("phase", phase, "%.3f" % f([X[:1], phase])[0].sum(), hasattr(out, "_uses_learning_phase"))
    clear_session()

    # forward and backward by hand
    state, values = loss.forward({x: X, y: Y}, [loss.output], set([loss.output]))
    root = {loss.output: np.ones_like(values[loss.output])}
    grads = loss.backward(state, root, set([W1, b2]))
    print("backward", sorted((v.name, g.shape, round(float(np.abs(g).sum()), 3)) for v, g in grads.items()))

    # images, channels last
    image = placeholder((None, 8, 8, 3), name="image")
    kernel = variable(rng.uniform(-0.3, 0.3, (3, 3, 3, 4)), name="kernel")
    conv = pool2d(relu(conv2d(image, kernel, padding="same"), max_value=6.0), (2, 2), (2, 2))
    flat = batch_flatten(conv)
    print("images", conv.shape, flat.shape, permute_dimensions(conv, (0, 3, 1, 2)).shape, squeeze(expand_dims(flat), -1).shape)
    pixels = rng.rand(2, 8, 8, 3).astype("float32")
    print("  %.3f" % function([image], [flat])([pixels])[0].sum())

    # time as a static axis, unrolled
    series = placeholder((None, 5, 3))
    Wx, Wh = variable(rng.uniform(-0.5, 0.5, (3, 4))), variable(rng.uniform(-0.5, 0.5, (4, 4)))

    def step(inp, states):
        h = C.tanh(dot(inp, Wx) + dot(states[0], Wh))
        return h, [h]

    start = C.reduce_sum(series * 0, axis=(0, 1)) * 0
    start = C.reshape(start, (1,)) + C.constant(np.zeros(4, np.float32))
    last, whole, states = rnn(step, series, [start])
    data = rng.rand(2, 5, 3).astype("float32")
    results = function([series], [last, whole])([data])
    print("rnn", [np.shape(r) for r in results], "%.4f" % results[0].sum(), len(states))

    # the batch as an axis and back, reductions over lists of axes and from the end
    unpacked = C.unpack_batch(x)
    print("unpacked", len(unpacked.dynamic_axes), C.to_batch(C.swapaxes(C.swapaxes(unpacked, 0, 1), 0, 1)).shape)
    print("  ", C.to_batch(unpacked * 2).eval({x: X[:3]}).shape)
    for axis in ([1, 2], -1, [-1, -2], None, (1,)):
        reduced = sum(series, axis=axis)
        print("sum", axis, reduced.shape, "%.3f" % np.sum(reduced.eval({series: data})))
    print("var", var(series, axis=[1]).shape, max(series, axis=1, keepdims=True).shape, any(series, axis=2).eval({series: data}).sum())
    ids = placeholder((None, 2), name="ids")
    table = variable(np.arange(12.0).reshape(4, 3))
    index = np.array([[0, 3], [1, 2]], dtype="float32")
    print("gather", gather(table, ids).eval({ids: index}).sum(axis=-1).tolist(), one_hot(ids, 4).eval({ids: index}).shape)
    chosen = switch(C.greater(C.reduce_sum(x), 3), x, -x)
    print("switch", "%.3f" % chosen.eval({x: X}).sum())
    print("dots", batch_dot(x, x, axes=[1, 1]).shape, batch_dot(series, series, axes=[1, 1]).shape)
    print("norm", "%.4f" % l2_normalize(x, axis=1).eval({x: X}).sum(), concatenate([x, x]).shape, stack([x, x], axis=1).shape)
    free = placeholder((None, None, 3), name="free")
    print("free", free.shape, int_shape(free), [f.eval({free: data}).shape for f in (free * 2, sum(free, axis=1), dot(free, Wx))])
    print("hard", "%.3f" % hard_sigmoid(x).eval({x: X}).sum(), "%.3f" % mean(binary_crossentropy(y, predictions)).eval({x: X, y: Y}).sum())
    print("uid", get_uid("dense"), get_uid("dense"), is_keras_tensor(x))


main()

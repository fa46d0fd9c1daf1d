"""The built-in operators, a file a family."""

from ...core.hookspecs import Register, hookimpl

FAMILIES: dict[str, tuple[str, ...]] = {
    "arithmetic": (
        "plus", "minus", "element_times", "element_divide", "reciprocal", "pow", "square", "negate", "abs", "sum", "mean",
    ),
    "maximum": ("element_max", "element_min", "log_add_exp"),
    "scaling": ("per_dim_mean_variance_normalize", "image_scaler"),
    "elementary": ("exp", "log", "sqrt", "floor", "ceil", "round", "clip"),
    "trigonometry": ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh"),
    "activation": (
        "sigmoid", "tanh", "relu", "leaky_relu", "param_relu", "elu", "selu", "softplus", "softsign", "hard_sigmoid",
        "straight_through_impl",
    ),
    "comparison": (
        "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "element_and", "element_or", "element_xor", "element_not",
        "element_select",
    ),
    "identity": ("alias", "stop_gradient", "ones_like", "zeros_like", "assign", "cast"),
    "dropout": ("dropout",),
    "reduction": ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_log_sum_exp"),
    "norm": ("reduce_l1", "reduce_l2", "reduce_sum_square"),
    "extremum": ("reduce_max", "reduce_min", "argmax", "argmin"),
    "softmax": ("softmax", "log_softmax", "hardmax"),
    "loss": ("cross_entropy_with_softmax", "squared_error", "binary_cross_entropy"),
    "metric": ("classification_error",),
    "batch_normalization": ("batch_normalization",),
    "normalization": ("local_response_normalization", "mean_variance_normalization"),
    "sorting": ("top_k",),
    "product": ("times", "times_transpose"),
    "shaping": ("reshape", "squeeze", "expand_dims", "flatten", "transpose", "swapaxes"),
    "slicing": ("slice", "splice", "gather", "one_hot"),
    "spatial": ("pad", "depth_to_space", "space_to_depth"),
    "cropping": ("crop_manual", "crop_automatic", "crop_automatic_with_ancestors"),
    "batch": ("unpack_batch", "to_batch"),
    "convolution": ("convolution", "convolution_transpose"),
    "pooling": ("pooling", "unpooling"),
    "roipooling": ("roipooling",),
    "delay": ("sequence.past_value", "sequence.future_value", "sequence.delay"),
}
"""Names of the operators by the file that defines them."""


@hookimpl
def cntk_register_ops(register: Register) -> None:
    for family, names in FAMILIES.items():
        for name in names:
            register(name, f"cntk.plugins.ops.{family}:{name.rpartition('.')[2]}")

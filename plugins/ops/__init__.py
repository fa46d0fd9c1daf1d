"""The built-in operators, a file a family."""

from ...core.extension.hookspecs import Register, RegisterNativeFunction, hookimpl

FAMILIES: dict[str, tuple[str, ...]] = {
    "arithmetic": (
        "plus",
        "minus",
        "element_times",
        "element_divide",
        "reciprocal",
        "pow",
        "square",
        "negate",
        "abs",
        "sum",
        "mean",
    ),
    "maximum": ("element_max", "element_min", "log_add_exp"),
    "scaling": ("per_dim_mean_variance_normalize", "image_scaler"),
    "elementary": ("exp", "log", "sqrt", "floor", "ceil", "round", "clip"),
    "trigonometry": ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "atanh"),
    "activation": (
        "sigmoid",
        "tanh",
        "relu",
        "leaky_relu",
        "param_relu",
        "elu",
        "selu",
        "softplus",
        "softsign",
        "hard_sigmoid",
        "straight_through_impl",
    ),
    "comparison": (
        "less",
        "less_equal",
        "equal",
        "not_equal",
        "greater",
        "greater_equal",
        "element_and",
        "element_or",
        "element_xor",
        "element_not",
        "element_select",
    ),
    "identity": ("alias", "stop_gradient", "ones_like", "zeros_like", "assign", "cast"),
    "dropout": ("dropout",),
    "reduction": ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_log_sum_exp"),
    "norm": ("reduce_l1", "reduce_l2", "reduce_sum_square"),
    "extremum": ("reduce_max", "reduce_min", "argmax", "argmin"),
    "softmax": ("softmax", "log_softmax", "hardmax"),
    "loss": ("cross_entropy_with_softmax", "squared_error", "binary_cross_entropy"),
    "logistic": ("weighted_binary_cross_entropy",),
    "cosine": ("cosine_distance", "cosine_distance_with_negative_samples"),
    "noise_contrastive": ("nce_loss",),
    "ranking": ("lambda_rank", "ndcg_at_1"),
    "metric": ("classification_error",),
    "edit_distance": ("edit_distance_error",),
    "batch_normalization": ("batch_normalization",),
    "normalization": ("local_response_normalization", "mean_variance_normalization"),
    "sorting": ("top_k",),
    "product": ("times", "times_transpose"),
    "shaping": ("reshape", "squeeze", "expand_dims", "flatten", "transpose", "swapaxes"),
    "slicing": ("slice", "splice", "gather", "one_hot"),
    "eye": ("eye_like",),
    "spatial": ("pad", "depth_to_space", "space_to_depth"),
    "cropping": ("crop_manual", "crop_automatic", "crop_automatic_with_ancestors"),
    "batch": ("unpack_batch", "to_batch"),
    "sequence_attention": ("sequence.attention",),
    "sequence_broadcast": ("reconcile_dynamic_axes", "sequence.broadcast_as"),
    "sequence_ends": ("sequence.is_first", "sequence.is_last"),
    "sequence_gathering": ("sequence.where", "sequence.gather", "sequence.scatter"),
    "sequence_making": ("to_sequence", "to_sequence_like"),
    "sequence_reduction": ("sequence.reduce_sum", "sequence.reduce_max"),
    "sequence_slicing": ("sequence.slice", "sequence.first", "sequence.last"),
    "sequence_softmax": ("sequence.softmax",),
    "sequence_unpacking": ("sequence.unpack",),
    "convolution": ("convolution", "convolution_transpose"),
    "pooling": ("pooling", "unpooling"),
    "roipooling": ("roipooling",),
    "random_distribution": (
        "random.uniform",
        "random.normal",
        "random.gumbel",
        "random.bernoulli",
        "random.uniform_like",
        "random.normal_like",
        "random.gumbel_like",
        "random.bernoulli_like",
    ),
    "random_sampling": ("random_sample", "random_sample_inclusion_frequency"),
    "ctc": ("labels_to_graph", "forward_backward"),
    "rnnstack": ("optimized_rnnstack",),
    "delay": ("sequence.past_value", "sequence.future_value", "sequence.delay"),
}
"""Names of the operators by the file that defines them; a dotted one belongs to a module of that name, as ``cntk.sequence.first``."""


@hookimpl
def cntk_register_ops(register: Register) -> None:
    for family, names in FAMILIES.items():
        for name in names:
            register(name, f"cntk.plugins.ops.{family}:{name.rpartition('.')[2]}")


@hookimpl
def cntk_register_native_functions(register: RegisterNativeFunction) -> None:
    register("Cntk.ExtensibilityExamples-2.7", "CreateUserTimesFunction", "cntk.plugins.ops.user_times:UserTimes")

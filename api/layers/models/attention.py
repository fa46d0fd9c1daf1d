"""Attention: weights of the steps of one sequence for each step of another."""

from __future__ import annotations

from typing import Any, cast

from cntk import ops
from cntk.axis import Axis
from cntk.core.common.user_frame import warn_user
from cntk.core.graph.arguments import InitLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_options, default_override_or, get_default_override
from cntk.initializer import glorot_uniform
from cntk.layers.activation import Label
from cntk.layers.basic_blocks import Stabilizer, named
from cntk.layers.dense import Dense
from cntk.layers.sequence import PastValueWindow
from cntk.ops.functions import Function

NEVER = -6e4
"""Logit of a place where there is no step: about the lowest number of float16; exp of it is zero in every element type."""


@checked
def AttentionModel(
    attention_dim: int,
    attention_span: int | None = None,
    attention_axis: int | Axis | None = None,
    init: InitLike = default_override_or(glorot_uniform()),
    go_backwards: bool = default_override_or(False),
    enable_self_stabilization: bool = default_override_or(True),
    name: str = "",
) -> Function:
    """A layer that, for each step of a decoder, averages the states of an encoder with weights that it learns to choose.

    The weights are softmax(v · tanh(decoder state · Wd + encoder state · We)) over the steps of the encoder.

    Args:
        attention_dim: dimension in which the states are compared.
        attention_span: deprecated: attend to so many steps only, the last of the encoder; given with *attention_axis*.
        attention_axis: deprecated: static axis for these steps, negative; the result keeps it with length 1.
        init: initial value of the three weights: a number or an initialiser.
        go_backwards: with *attention_span*: whether it takes the first steps of the encoder.
        enable_self_stabilization: whether a :func:`Stabilizer` scales states, comparison and result.
        name: name of the result.

    Returns:
        A function (encoder states, decoder states) → averages of encoder states, a sequence on the decoder's axis.  The weights are
        found by the name ``attention_weights``.

    Raises:
        ValueError: one of *attention_span* and *attention_axis* is given without the other, or the span is not positive.

    Source: D. Bahdanau, K. Cho, Y. Bengio, "Neural machine translation by jointly learning to align and translate", ICLR 2015.

    >>> from cntk.layers import AttentionModel
    >>> encoder = C.sequence.input_variable(3)
    >>> decoder = C.sequence.input_variable(2, sequence_axis=C.Axis('decoder'))
    >>> context = AttentionModel(5, name='attention')(encoder, decoder)
    >>> print(context)
    attention: Composite(Sequence[Tensor[3]], SequenceOver[decoder][Tensor[2]]) -> SequenceOver[decoder][Tensor[3]]
    """
    init = get_default_override(AttentionModel, init=init)
    go_backwards = get_default_override(AttentionModel, go_backwards=go_backwards)
    stabilize = get_default_override(AttentionModel, enable_self_stabilization=enable_self_stabilization)
    if (attention_span is None) != (attention_axis is None):
        raise ValueError(
            f"AttentionModel: attention_span {attention_span} and attention_axis {attention_axis} go together; give both or none"
        )
    if attention_span is not None and attention_span <= 0:
        raise ValueError(f"AttentionModel: attention_span must be positive, got {attention_span}")

    def projection(dim: int) -> Any:
        with default_options(bias=False):
            return Stabilizer(enable_self_stabilization=stabilize) >> Dense(dim, init=init, input_rank=1)

    compared_encoder, compared_decoder, logit = projection(attention_dim), projection(attention_dim), projection(1)
    stabilized = Stabilizer(enable_self_stabilization=stabilize)

    def logits(encoder: Any, decoder: Any) -> Any:
        on_decoder = ops.sequence.broadcast_as(compared_encoder(encoder), decoder)
        return logit(ops.tanh(compared_decoder(decoder) + on_decoder))

    def attention(encoder_hidden_state: Any, decoder_hidden_state: Any) -> Any:
        encoder, flags = ops.sequence.unpack(encoder_hidden_state, padding_value=0).outputs
        valid = ops.sequence.broadcast_as(ops.reshape(flags, (1,), 1), decoder_hidden_state)
        masked = ops.element_select(valid, logits(encoder, decoder_hidden_state), NEVER)
        weights = Label("attention_weights")(ops.softmax(masked, axis=0))
        average = ops.reduce_sum(weights * ops.sequence.broadcast_as(encoder, weights), axis=0)
        return stabilized(ops.reshape(average, (), 0, 1))

    if attention_span is None:
        return named(attention, name)

    warn_user("attention_span and attention_axis are deprecated; leave them out", DeprecationWarning)
    window = PastValueWindow(attention_span, axis=cast(int, attention_axis), go_backwards=go_backwards)

    def windowed_attention(h_enc: Any, h_dec: Any) -> Any:
        encoder, valid = window(h_enc).outputs
        masked = logits(encoder, h_dec) + (ops.sequence.broadcast_as(valid, h_dec) - 1) * 50
        weights = Label("attention_weights")(ops.softmax(masked, axis=attention_axis))
        return stabilized(ops.reduce_sum(ops.sequence.broadcast_as(encoder, h_dec) * weights, axis=attention_axis))

    return named(windowed_attention, name)


__all__ = ["AttentionModel"]

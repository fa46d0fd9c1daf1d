"""The warning of parameters that no learner of a trainer has."""

from __future__ import annotations

from typing import Any

import pytest

import cntk as C


def network(layers: int) -> Any:
    with C.default_options(init=0.1):
        return C.layers.Sequential([C.layers.Dense(2, name=f"layer{number}") for number in range(layers)])(C.input_variable(2))


def warnings_of(caplog: pytest.LogCaptureFixture, model: Any, parameters: Any) -> list[str]:
    caplog.clear()
    loss = C.squared_error(model, C.input_variable(2))
    C.Trainer(model, loss, C.sgd(parameters, 0.1))
    return caplog.messages


def test_they_are_named_by_their_layers(caplog: pytest.LogCaptureFixture) -> None:
    model = network(3)
    (message,) = warnings_of(caplog, model, model.layer1.parameters)
    assert message == "Trainer: 4 parameters of the loss belong to no learner and stay as they are: layer0/W, layer0/b, layer2/W, layer2/b"


def test_there_is_none_where_all_are_trained(caplog: pytest.LogCaptureFixture) -> None:
    model = network(2)
    assert warnings_of(caplog, model, model.parameters) == []


def test_of_many_the_first_are_named(caplog: pytest.LogCaptureFixture) -> None:
    model = network(9)
    (message,) = warnings_of(caplog, model, model.layer0.parameters)
    assert message.startswith("Trainer: 16 parameters of the loss")
    assert message.endswith(", …")
    assert message.count("layer") == 10

"""What a request is refused with."""

from __future__ import annotations

from typing import Any

import msgspec


class Refusal(Exception):
    """A request that is not answered as it asks.

    Args:
        status: status of HTTP.
        message: what was given, what was expected, how to fix it.
        retry_after: seconds after which to try again; None if that would be of no use.
        input: the input that the message is about, by name.
        expected: what that input takes, as models describe it; where the model has no such input, what all take.
        example: a tensor that it takes.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after: int | None = None,
        input: str | None = None,
        expected: dict[str, Any] | list[dict[str, Any]] | None = None,
        example: dict[str, Any] | str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
        self.input, self.expected, self.example = input, expected, example

    @property
    def body(self) -> bytes:
        """The error as JSON: ``error`` is text, as the protocol has it; more members are for programs."""
        more = {"input": self.input, "expected": self.expected, "example": self.example}
        return msgspec.json.encode({"error": self.message, **{name: value for name, value in more.items() if value is not None}})

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the response, beside those of its content."""
        return [] if self.retry_after is None else [(b"retry-after", str(self.retry_after).encode())]


class BadTensor(ValueError):
    """A tensor that does not fit, or a request whose tensors cannot be read.

    Args:
        name: the input that it is for; None where that is not known.
        message: what was given, and what was expected.
        status: status of HTTP.
    """

    def __init__(self, name: str | None, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.name, self.status = name, status

"""The configuration of a minibatch source as an object of CNTK's engine, which can be looked at as a dictionary."""

from __future__ import annotations

from typing import Any

from cntk.io.constants import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, INFINITELY_REPEAT
from cntk.logging.report import TraceLevel


class OptionalBool:
    """True, False, or None for what depends on other things; :meth:`set` chooses."""

    def __init__(self) -> None:
        self.value: bool | None = None

    def set(self, value: bool) -> None:
        """Choose."""
        self.value = bool(value)

    def reset(self) -> None:
        """Choose no more."""
        self.value = None

    def is_initialized(self) -> bool:
        """Whether something has been chosen."""
        return self.value is not None

    def get(self) -> bool:
        """What has been chosen.

        Raises:
            RuntimeError: nothing has.
        """
        if self.value is None:
            raise RuntimeError("OptionalBool: nothing has been chosen; call set(True) or set(False) first")
        return self.value


class MinibatchSourceConfig:
    """The parts of a minibatch source.

    Args:
        deserializers: deserializers.
        randomize: whether to shuffle.

    Attributes:
        deserializers, max_samples, max_sweeps, randomization_window_in_chunks, randomization_window_in_samples, randomization_seed,
        trace_level, is_multithreaded, is_frame_mode_enabled, truncation_length, max_errors: as ``MinibatchSource`` has them.

    >>> config = C.cntk_py.MinibatchSourceConfig([C.io.CTFDeserializer("a.ctf", C.io.StreamDefs(x=C.io.StreamDef("x", 2)))], False)
    >>> C.cntk_py.to_dictionary(config)["randomize"]
    False
    """

    def __init__(self, deserializers: Any = (), randomize: bool = True) -> None:
        self.deserializers = list(deserializers)
        self.max_samples: int = INFINITELY_REPEAT
        self.max_sweeps: int = INFINITELY_REPEAT
        self.randomization_window_in_chunks: int = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS if randomize else 0
        self.randomization_window_in_samples: int = 0
        self.randomization_seed: int = 0
        self.trace_level: Any = TraceLevel.Warning
        self.is_multithreaded = OptionalBool()
        self.is_frame_mode_enabled: bool = False
        self.truncation_length: int = 0
        self.max_errors: int = 0

    def add_deserializer(self, deserializer: Any) -> MinibatchSourceConfig:
        """Add a deserializer, and return the configuration."""
        self.deserializers.append(deserializer)
        return self

    def validate(self) -> None:
        """See that nothing in it excludes something else.

        Raises:
            RuntimeError: something does.
        """
        for first, second in (
            ("randomization_window_in_chunks", "randomization_window_in_samples"),
            ("is_frame_mode_enabled", "truncation_length"),
        ):
            if getattr(self, first) and getattr(self, second):
                raise RuntimeError(f"MinibatchSource: {first} and {second} exclude each other; set one of them to 0")
        if self.max_samples != INFINITELY_REPEAT and self.max_sweeps != INFINITELY_REPEAT:
            raise RuntimeError(f"MinibatchSource: give max_samples or max_sweeps, not both; got {self.max_samples} and {self.max_sweeps}")

    @property
    def is_threaded(self) -> bool:
        """Whether several threads read: as set, or if a deserializer transforms what it has read."""
        chosen = self.is_multithreaded.value
        return any(getattr(one, "transforms", False) for one in self.deserializers) if chosen is None else chosen


def to_dictionary(config: MinibatchSourceConfig) -> dict[str, Any]:
    """The entries of a configuration by the names that CNTK's engine has for them.

    Raises:
        RuntimeError: the configuration contradicts itself.
    """
    config.validate()
    window = config.randomization_window_in_chunks or config.randomization_window_in_samples
    found: dict[str, Any] = {
        "frameMode": config.is_frame_mode_enabled,
        "multiThreadedDeserialization": config.is_threaded,
        "traceLevel": config.trace_level,
        "randomize": bool(window),
        "deserializers": [_described(one) for one in config.deserializers],
    }
    if window:
        found["randomizationWindow"] = window
        found["sampleBasedRandomizationWindow"] = bool(config.randomization_window_in_samples)
        found["randomizationSeed"] = config.randomization_seed
    if config.truncation_length:
        found["truncated"] = True
        found["truncationLength"] = config.truncation_length
    return found


def _described(deserializer: Any) -> dict[str, Any]:
    return deserializer.describe() if hasattr(deserializer, "describe") else {"type": type(deserializer).__name__}

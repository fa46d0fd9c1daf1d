"""Logs: a line of JSON for each event."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON: time, level, event, and what ``extra={"fields": ...}`` adds."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "event": record.getMessage(), "process": record.process}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def begin(level: str) -> None:
    """Log to standard error: events of the server, and those that uvicorn tells."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("cntk.serving", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)

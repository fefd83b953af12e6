"""Failures: where everything is caught, and any error as the frame that tells the app.

``attempt`` is the engine's one ``except Exception``; the serving's rounds and the loop's answers go
through it, so that a fault ends what it belongs to and not the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from engine.errors import EngineError
from engine.protocol import Failure

INTERNAL: Final = "internal"

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


def attempt(
    work: Callable[[], Result], failed: Callable[[Exception], None], event: str
) -> Result | None:
    """Do a piece of work; where it raises, tell ``failed`` and give None.

    Args:
        event: what is logged, with a traceback where the error is none that we foresaw.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - one request's fault must not end the process
        if isinstance(error, EngineError):
            _LOG.info("%s code=%s", event, error.code)
            # A template's own words may repeat what a person wrote.
            _LOG.debug("%s reason=%s", event, error.sentence)
        else:
            _LOG.exception("%s", event)
        failed(error)
        return None


def failure_of(error: Exception, request: int | None) -> Failure:
    """The frame that tells the app about an error; ours speak for themselves."""
    if isinstance(error, EngineError):
        return Failure(
            request=request, code=error.code, sentence=error.sentence, numbers=dict(error.numbers)
        )
    return Failure(
        request=request,
        code=INTERNAL,
        sentence=f"The engine failed inside ({type(error).__name__}); its log says more.",
    )

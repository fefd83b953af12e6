"""What every owner of a resource has in common: it is closed, by hand or by leaving ``with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Owner(ABC):
    """Holds something until ``close``, which a context manager calls at its end."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held; may be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

"""Sizes, times and one sentence that the command line says too: not translated, no Qt. Pure."""

from __future__ import annotations


def left_out_words(count: int) -> str:
    """That the oldest messages were not seen, for the command line."""
    if count == 1:
        return "The oldest message no longer fits and is not seen by the model."
    return f"The {count:,} oldest messages no longer fit and are not seen by the model."


def megabytes(count: int) -> str:
    """Bytes as disks are read: ``590 MB``, ``1.2 GB``, below one MB ``12 kB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * unit:
            return (
                f"{count / unit:.1f} {name}"
                if count < 9.95 * unit
                else f"{count / unit:.0f} {name}"
            )
    return f"{count / 1e3:.0f} kB"


def seconds(milliseconds: float) -> str:
    """A short time: ``0.2 s``, below a tenth ``0.04 s``, never less than ``0.01 s``."""
    found = max(0.01, milliseconds / 1000)
    return f"{found:.2f} s" if found < 0.095 else f"{found:.1f} s"

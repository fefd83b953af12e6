"""Runs mlx-lm's converter over several checkpoints in one process: ``python mlx_child.py``.

The orders come on stdin: {"folder", "out", "bits", "group", "recipe", "back"}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mlx.core as mx
from mlx_lm import convert


def main(orders: list[dict[str, Any]]) -> None:
    """Convert each in turn."""
    mx.set_default_device(mx.cpu)
    for order in orders:
        convert(
            order["folder"],
            order["out"],
            quantize=order["bits"] is not None or order["recipe"] is not None,
            q_group_size=order["group"],
            q_bits=order["bits"],
            quant_predicate=order["recipe"],
            dequantize=order["back"],
        )


if __name__ == "__main__":
    main(json.load(sys.stdin))

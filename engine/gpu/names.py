"""Names of the pieces of scratch, and which of them are in use at one time."""

from __future__ import annotations

from typing import Final

RESIDUAL: Final = "residual"
NORMED: Final = "normed"
PLAIN: Final = "normed in float32"
JOINED: Final = "joint outputs"
QUERY: Final = "queries"
INNER: Final = "inner"
SEPARATE: Final = "separate output"
TOTAL: Final = "sum of branches"
FED: Final = "one branch"
ROW_GATE: Final = "gate of a branch"
PARTIALS: Final = "partial attention"
READ: Final = "read of states"
ROUTED: Final = "router logits"
EXPERT_WEIGHTS: Final = "weights of experts"
CHOSEN: Final = "chosen experts"
EXPERT_OUTPUTS: Final = "outputs of experts"
LOGITS: Final = "logits"
UNPACKED: Final = "unpacked weights"
DELTA: Final = "delta rule"
ORDER: Final = "pairs by expert"
STARTS: Final = "where experts begin"
COUNTS: Final = "counts of pairs"
PAIRS: Final = "pairs"

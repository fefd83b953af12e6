"""Triton's kernels run in its interpreter here: said before anything imports one.

Triton reads the variable where a kernel is decorated; nothing outside this folder imports kernels
of Triton in the same process.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

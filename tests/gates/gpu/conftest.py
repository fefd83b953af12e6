"""Triton's kernels run in its interpreter here: said before anything imports one."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

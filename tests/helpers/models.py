"""Where the tests find the two small real models; the set-up script puts them there."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".models"


def smol_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1, the starter model (llama family, with a chat template)."""
    return _present("SmolLM2-135M-Instruct.Q4_1.gguf")


def gemma_path() -> Path:
    """Gemma 3 270M Q4_K_M, a base model (sliding windows, SPM tokenizer, no template)."""
    return _present("gemma-3-270m-q4_k_m.gguf")


def _present(name: str) -> Path:
    path = FOLDER / name
    assert path.is_file(), f"{path} is missing; `python3 installer/bootstrap.py test` fetches it"
    return path

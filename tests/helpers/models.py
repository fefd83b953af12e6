"""Where the tests find the two small real models and llama.cpp's converter.

The set-up script puts them there.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".models"


def smol_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1, the starter model (llama family, with a chat template)."""
    return _present("SmolLM2-135M-Instruct.Q4_1.gguf")


def gemma_path() -> Path:
    """Gemma 3 270M Q4_K_M, a base model (sliding windows, SPM tokenizer, no template)."""
    return _present("gemma-3-270m-q4_k_m.gguf")


def llama_cpp_path() -> Path:
    """The part of llama.cpp's source that the tests use: its converter, vocabularies, templates."""
    return _present("llama.cpp")


def converter_path() -> Path:
    """The folder of llama.cpp's ``convert_hf_to_gguf.py`` and of its vocabulary files."""
    _present("llama.cpp/convert_hf_to_gguf.py")
    return FOLDER / "llama.cpp"


def _present(name: str) -> Path:
    path = FOLDER / name
    assert path.exists(), f"{path} is missing; `python3 installer/bootstrap.py test` fetches it"
    return path

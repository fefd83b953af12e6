"""Runs llama.cpp's converter over several checkpoints in one process.

    python gguf_child.py CONVERTER_FOLDER < orders.json

Each order is {"folder", "out", "kind"}. The converter knows a tokenizer by a hash of what it makes
of a text, which none trained here has; so the pre-tokenizer's name is told instead of recognised,
and Gemma 3's vocabulary is written as conversion from a SentencePiece file would have it. Weights
and keys are the converter's own throughout.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from pathlib import Path
from typing import Any


def main(converter: Path) -> None:
    """Run the orders on stdin."""
    sys.path[:0] = [str(converter), str(converter / "gguf-py")]
    base, gemma = (importlib.import_module(f"conversion.{name}") for name in ("base", "gemma"))
    base.TextModel.get_vocab_base_pre = _pre_name
    base.TextModel._set_vocab_sentencepiece = _no_sentencepiece
    gemma.Gemma3Model.set_vocab = _set_spm_vocab
    for order in json.load(sys.stdin):
        script = converter / "convert_hf_to_gguf.py"
        sys.argv = [str(script), order["folder"], "--outfile", order["out"]]
        sys.argv += ["--outtype", order["kind"]]
        runpy.run_path(str(script), run_name="__main__")


def _pre_name(model: Any, tokenizer: Any) -> str:
    del tokenizer
    return "qwen35" if "qwen3_5" in str(model.hparams.get("model_type")) else "qwen2"


def _no_sentencepiece(model: Any) -> None:
    """What the converter raises itself where there is no such file, once it has the library."""
    raise FileNotFoundError(f"{model.dir_model} has no tokenizer.model")


def _set_spm_vocab(model: Any) -> None:
    """Tokens with the score of their rank, and the types that a SentencePiece file gives them."""
    read = json.loads((model.dir_model / "tokenizer.json").read_text("utf-8"))
    vocabulary: dict[str, int] = read["model"]["vocab"]
    special = {token["id"] for token in read["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    kinds = [
        3 if index in special else 6 if token.startswith("<0x") else 1
        for index, token in enumerate(tokens)
    ]
    kinds[vocabulary["<unk>"]] = 2
    writer = model.gguf_writer
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(index) for index in range(len(tokens))])
    writer.add_token_types(kinds)
    for add, name in (
        (writer.add_bos_token_id, "<bos>"),
        (writer.add_eos_token_id, "<eos>"),
        (writer.add_pad_token_id, "<pad>"),
        (writer.add_unk_token_id, "<unk>"),
    ):
        add(vocabulary[name])
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template((model.dir_model / "chat_template.jinja").read_text("utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""How a published checkpoint's weights are packed, by what its config declares.

A method that is not read is refused by its name, before a tensor is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.checkpoint.labels import quoted
from engine.checkpoint.published.config import CONFIG
from engine.checkpoint.published.json_text import Json, json_refusal, kind_of
from engine.errors import UnsupportedFormat

AFFINE = "affine"
_TEXT_PART = "text_config"
_FP8_METHODS = ("fp8", "fbgemm_fp8")
_COMPRESSED = "compressed-tensors"
_READ = "fp8 (block-scaled, by row or by tensor) and MLX's own modes"


@dataclass(frozen=True, slots=True)
class Packing:
    """How one module's weight is packed in an MLX checkpoint.

    Attributes:
        bits: of one code.
        group: elements of a row that share a scale.
        mode: "affine", "mxfp4", "mxfp8" or "nvfp4".
    """

    bits: int
    group: int
    mode: str = AFFINE


MODES: Mapping[str, tuple[Packing, ...]] = {
    AFFINE: tuple(Packing(bits, group) for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)),
    "mxfp4": (Packing(4, 32, "mxfp4"),),
    "mxfp8": (Packing(8, 32, "mxfp8"),),
    "nvfp4": (Packing(4, 16, "nvfp4"),),
}
"""What each mode allows."""
_DEFAULTS = {mode: allowed[0] for mode, allowed in MODES.items()} | {AFFINE: Packing(4, 64)}


@dataclass(frozen=True, slots=True)
class MLXScheme:
    """Codes with scales beside them, packed as the config says.

    Attributes:
        common: for modules that are not named; None where the config declares nothing.
        modules: module path to its own packing; None for one that is declared to stay whole.
    """

    common: Packing | None = None
    modules: Mapping[str, Packing | None] = field(default_factory=dict)

    def packing(self, module: str) -> Packing | None:
        """How the module's weight is packed if it is, None where it is declared not to be."""
        return self.modules.get(module, self.common)


@dataclass(frozen=True, slots=True)
class FP8Scheme:
    """Eight-bit floats with scales beside them.

    Attributes:
        block: (rows, columns) of the elements that share a scale, None where the shapes tell.
        declared: whether the config says that weights are packed, so that scales must be there.
    """

    block: tuple[int, int] | None = None
    declared: bool = False


Scheme = MLXScheme | FP8Scheme


def scheme_of(config: Mapping[str, Json], written_by: str | None) -> Scheme:
    """The scheme of a checkpoint.

    Args:
        written_by: "format" of the first file's own metadata ("pt", "mlx").

    Raises:
        UnsupportedFormat: the weights are packed by a method that is not read.
        CheckpointUnreadable: what the config declares makes no sense.
    """
    if (own := config.get("quantization")) is not None:
        return _mlx(_object(own, "quantization"))
    declared = config.get("quantization_config")
    if declared is None:
        text = config.get(_TEXT_PART)
        declared = text.get("quantization_config") if isinstance(text, dict) else None
    if declared is None:
        return MLXScheme() if written_by == "mlx" else FP8Scheme()
    found = _object(declared, "quantization_config")
    if "quant_method" not in found and "group_size" in found:
        return _mlx(found)
    return _published(found)


def _mlx(declared: Mapping[str, Json]) -> MLXScheme:
    common = _packing(declared, "quantization")
    modules: dict[str, Packing | None] = {}
    for path, each in declared.items():
        if isinstance(each, dict):
            modules[path] = _packing(each, f"quantization of {quoted(path)}")
        elif isinstance(each, bool) and path != "quantize_input":
            modules[path] = common if each else None
    return MLXScheme(common, modules)


def _packing(declared: Mapping[str, Json], place: str) -> Packing:
    """A packing that leaves nothing open: what is not said is the mode's own default."""
    mode = declared.get("mode", AFFINE)
    if not isinstance(mode, str) or mode not in MODES:
        raise UnsupportedFormat(
            f"{CONFIG}: {place} has the mode {kind_of(mode)}, which Hearth cannot read; "
            f"it reads {', '.join(MODES)}",
            file=CONFIG,
        )
    usual = _DEFAULTS[mode]
    bits = declared.get("bits", usual.bits)
    group = declared.get("group_size", usual.group)
    for allowed in MODES[mode]:
        if (bits, group) == (allowed.bits, allowed.group) and type(bits) is type(group) is int:
            return allowed
    raise UnsupportedFormat(
        f"{CONFIG}: {place} has {kind_of(bits)} bits in groups of {kind_of(group)} ({mode}), "
        "which Hearth cannot read; it reads 2, 3, 4, 5, 6 and 8 bits in groups of 32, 64 and 128",
        file=CONFIG,
    )


def _published(declared: Mapping[str, Json]) -> FP8Scheme:
    method = declared.get("quant_method")
    if method in _FP8_METHODS:
        return FP8Scheme(_block(declared.get("weight_block_size")), declared=True)
    weights = _compressed_weights(declared) if method == _COMPRESSED else ()
    if weights and all(_is_fp8(each) for each in weights):
        return FP8Scheme(_block(weights[0].get("block_structure")), declared=True)
    shown = kind_of(method)
    if method == _COMPRESSED:
        shown += f" with the format {kind_of(declared.get('format'))}"
    raise UnsupportedFormat(
        f"{CONFIG}: the weights are packed by the method {shown}, which Hearth cannot read; "
        f"it reads {_READ}. Get the original model or a GGUF file",
        file=CONFIG,
    )


def _compressed_weights(declared: Mapping[str, Json]) -> tuple[Mapping[str, Json], ...]:
    """What a compressed-tensors config says of the weights of each of its groups."""
    groups = declared.get("config_groups")
    found = groups.values() if isinstance(groups, dict) else ()
    weights = [each.get("weights") if isinstance(each, dict) else None for each in found]
    return tuple(each if isinstance(each, dict) else {} for each in weights)


def _is_fp8(weights: Mapping[str, Json]) -> bool:
    return weights.get("type") == "float" and weights.get("num_bits") == 8


def _block(declared: Json) -> tuple[int, int] | None:
    if declared is None:
        return None
    if (
        isinstance(declared, list)
        and len(declared) == 2
        and type(rows := declared[0]) is int
        and type(columns := declared[1]) is int
        and min(rows, columns) >= 1
    ):
        return rows, columns
    raise json_refusal(
        CONFIG, f"has {kind_of(declared)} as weight_block_size; wanted two numbers of 1 or more"
    )


def _object(value: Json, key: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise json_refusal(CONFIG, f"has {kind_of(value)} as {key}; wanted an object")
    return value

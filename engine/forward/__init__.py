"""Running a ``ModelSpec`` in torch: the float32 reference, and where no native library can run."""

from engine.forward.model import TorchForward, Wanted
from engine.forward.products import DequantizedProducts, Products
from engine.forward.runner import TorchRunner
from engine.forward.weights import Weights

__all__ = ["DequantizedProducts", "Products", "TorchForward", "TorchRunner", "Wanted", "Weights"]

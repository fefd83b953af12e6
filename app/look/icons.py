"""Line icons, rendered from their SVG files in any colour, size and device ratio.

Owns a cache of pixmaps; used from the UI thread only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER: Final = Path(__file__).resolve().parents[2] / "resources" / "icons"


STROKE: Final = 1.6


class Icons:
    """Reads the SVG files of one folder once each and keeps what it has rendered."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._sources: dict[str, bytes] = {}
        self._pixmaps: dict[tuple[str, int, str, float, float], QPixmap] = {}

    def pixmap(
        self, name: str, size: int, colour: str, ratio: float, *, stroke: float = STROKE
    ) -> QPixmap:
        """Return icon ``name`` as ``size`` logical pixels square at the device's ``ratio``.

        Args:
            name: file name without its ending.
            size: side in logical pixels.
            colour: ``#rrggbb``, put where the file says currentColor.
            ratio: device pixels for one logical pixel.
            stroke: line width on the 24 grid.

        Raises:
            FileNotFoundError: there is no such icon.
        """
        key = (name, size, colour, ratio, stroke)
        found = self._pixmaps.get(key)
        if found is None:
            found = self._pixmaps[key] = self._render(*key)
        return found

    def application(self) -> QIcon:
        """The application's icon in the sizes that task bars ask for."""
        icon = QIcon()
        for size in (16, 24, 32, 48, 64, 128, 256):
            icon.addPixmap(self.pixmap("hearth", size, "#000000", 1.0))
        return icon

    def _render(self, name: str, size: int, colour: str, ratio: float, stroke: float) -> QPixmap:
        if name not in self._sources:
            self._sources[name] = (self._folder / f"{name}.svg").read_bytes()
        coloured = self._sources[name].replace(b"currentColor", colour.encode())
        coloured = coloured.replace(
            f'stroke-width="{STROKE}"'.encode(), f'stroke-width="{stroke}"'.encode()
        )
        side = round(size * ratio)
        pixmap = QPixmap(side, side)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        QSvgRenderer(QByteArray(coloured)).render(painter, QRectF(0, 0, side, side))
        painter.end()
        pixmap.setDevicePixelRatio(ratio)
        return pixmap

"""Errors are caught by name; everything else is caught in three known places and nowhere else."""

from __future__ import annotations

import ast

from tests.structure.sources import Source, product

# The loop's round, the client's frame reader, the Qt excepthook (house rule): file -> how many.
BROAD = ("Exception", "BaseException")


def test_no_except_is_bare() -> None:
    assert [place for s in product() for place, names in catches(s) if names == []] == []


def test_everything_is_caught_in_at_most_three_places() -> None:
    broad = [
        place
        for s in product()
        for place, names in catches(s)
        if any(name in BROAD for name in names) and not reraises(s, place)
    ]
    assert len(broad) <= 3, broad


def test_the_search_sees_broad_and_bare_catches() -> None:
    text = "try:\n    pass\nexcept Exception:\n    pass\ntry:\n    pass\nexcept:\n    pass\n"
    source = Source(next(iter(product())).path, text, ast.parse(text))
    assert [names for _, names in catches(source)] == [["Exception"], []]


def catches(source: Source) -> list[tuple[str, list[str]]]:
    """Each handler: "file:line", and the names that it catches."""
    return [
        (f"{source.name}:{node.lineno}", caught(node.type))
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
    ]


def caught(kind: ast.expr | None) -> list[str]:
    if kind is None:
        return []
    parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return [ast.unparse(part) for part in parts]


def reraises(source: Source, place: str) -> bool:
    """Whether the handler only tidies up: it ends by raising again."""
    line = int(place.rsplit(":", 1)[1])
    return any(
        isinstance(node, ast.ExceptHandler)
        and node.lineno == line
        and isinstance(node.body[-1], ast.Raise)
        for node in ast.walk(source.tree)
    )

"""Sizes stay small (files, classes, functions, packages); what may be larger says why."""

from __future__ import annotations

import ast
from collections import Counter

from tests.structure.sources import Source, classes, functions, length, product, sources

FILE_LINES = 500
CLASS_LINES = 250
PUBLIC_METHODS = 15
ATTRIBUTES = 12
FUNCTION_LINES = 40
KERNEL_LINES = 100
"""Of a kernel or its launch: a loop holds what a program knows, a launch names every argument."""
PARAMETERS = 6
PACKAGE_FILES = 12

# What passes a budget, with the reason. A line here that is no longer needed fails the test.
EXEMPT: dict[str, str] = {
    "package kernels/quant": "one file a tensor format, and GGUF has that many",
    "function kernels/cpu/library.py::__init__": "a table: one call binds one entry of the library",
}


def test_no_file_is_longer_than_five_hundred_lines() -> None:
    over = {s.name for s in sources() if s.line_count > FILE_LINES and not s.generated}
    assert unexplained("file", over) == []


def test_no_class_is_longer_than_its_budget() -> None:
    over = {
        f"{s.name}::{c.name}"
        for s in product()
        for c in classes(s.tree)
        if length(c) > CLASS_LINES and not s.generated
    }
    assert unexplained("class", over) == []


def test_no_class_has_more_public_methods_than_its_budget() -> None:
    over = {
        f"{s.name}::{c.name}"
        for s in product()
        for c in classes(s.tree)
        if len(public_methods(c)) > PUBLIC_METHODS
    }
    assert unexplained("methods", over) == []


def test_no_class_keeps_more_attributes_than_its_budget() -> None:
    over = {
        f"{s.name}::{c.name}"
        for s in product()
        for c in classes(s.tree)
        if len(kept_attributes(c)) > ATTRIBUTES
    }
    assert unexplained("attributes", over) == []


def test_no_function_is_longer_than_its_budget() -> None:
    over = {
        f"{s.name}::{f.name}"
        for s in product()
        for f in functions(s.tree)
        if code_length(f) > (KERNEL_LINES if is_kernel(s) else FUNCTION_LINES)
    }
    assert unexplained("function", over) == []


def test_no_function_takes_more_parameters_than_its_budget() -> None:
    over = {
        f"{s.name}::{f.name}"
        for s in product()
        for f in functions(s.tree)
        if parameter_count(f) > PARAMETERS and not is_launcher(s)
    }
    assert unexplained("parameters", over) == []


def test_no_package_has_more_files_than_its_budget() -> None:
    count = Counter(s.path.parent.as_posix() for s in product() if s.path.name != "__init__.py")
    over = {package for package, files in count.items() if files > PACKAGE_FILES}
    assert unexplained("package", over) == []


def test_the_measures_see_what_is_too_large() -> None:
    tree = ast.parse(
        "class A:\n"
        + "".join(f"    def m{i}(self): self.a{i} = 1\n" for i in range(20))
        + "def f(a, b, c, d, e, g, *, h):\n"
        + '    """One.\n\n    Two.\n    """\n'
        + "    a = 1\n" * 41
    )
    (big,) = classes(tree)
    long = next(f for f in functions(tree) if f.name == "f")
    assert len(public_methods(big)) == 20
    assert len(kept_attributes(big)) == 20
    assert code_length(long) == 42
    assert parameter_count(long) == 7


def unexplained(budget: str, over: set[str]) -> list[str]:
    """What passes ``budget`` without a reason, and reasons that nothing needs any more."""
    listed = {key.split(" ", 1)[1] for key in EXEMPT if key.startswith(f"{budget} ")}
    return sorted(over - listed) + [f"not needed: {name}" for name in sorted(listed - over)]


def public_methods(node: ast.ClassDef) -> list[str]:
    return [
        each.name
        for each in node.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
    ]


def kept_attributes(node: ast.ClassDef) -> set[str]:
    """Names that methods assign on ``self``."""
    return {
        target.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Assign | ast.AnnAssign)
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
        if isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }


def code_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring: that one may be as long as it has to say."""
    whole = length(node)
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return whole - length(first)
    return whole


def parameter_count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters that a caller thinks about: ``self`` and ``cls`` do not count."""
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def is_kernel(source: Source) -> bool:
    """A file of Triton's language, or one that launches it."""
    parts = source.name.split("/")
    return parts[0] == "kernels" and len(parts) == 3 and parts[1] not in ("cpu", "quant", "packed")


def is_launcher(source: Source) -> bool:
    """Launchers of kernels and bindings to native code pass a kernel's whole argument list."""
    return source.path.parts[0] == "kernels"

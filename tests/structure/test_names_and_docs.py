"""Every public name and module says what it is; names come from the project's vocabulary."""

from __future__ import annotations

import ast
import re

from tests.structure.sources import classes, functions, product

FORBIDDEN_CLASS = re.compile(r"(Manager|Helper|Util|Utils|Handler|Data|Info|Process)$")
# The ban on "process" means vague words; this one is a process of the operating system.
ALLOWED_CLASSES = {"EngineProcess"}
FORBIDDEN_VERB = re.compile(r"^_?(do_|handle_)")
FORBIDDEN_FILE = re.compile(r"^(utils?|helpers?|misc|common|manager)\.py$")


def test_every_module_opens_with_a_docstring() -> None:
    bare = [
        s.name for s in product() if s.path.name != "__init__.py" and not ast.get_docstring(s.tree)
    ]
    assert bare == []


def test_every_public_class_and_function_has_a_docstring_that_opens_with_a_sentence() -> None:
    poor = [
        f"{s.name}:{node.lineno} {node.name}"
        for s in product()
        for node in (*public_functions(s.tree), *public_classes(s.tree))
        if not first_line(node).endswith((".", "?", ":", "::"))
    ]
    assert poor == []


def test_no_class_has_a_name_that_says_nothing() -> None:
    vague = [
        f"{s.name}: {c.name}"
        for s in product()
        for c in classes(s.tree)
        if FORBIDDEN_CLASS.search(c.name) and c.name.lstrip("_") not in ALLOWED_CLASSES
    ]
    assert vague == []


def test_no_function_is_named_by_an_empty_verb() -> None:
    vague = [
        f"{s.name}: {f.name}"
        for s in product()
        for f in functions(s.tree)
        if FORBIDDEN_VERB.match(f.name)
    ]
    assert vague == []


def test_no_file_is_a_drawer_for_anything() -> None:
    assert [s.name for s in product() if FORBIDDEN_FILE.match(s.path.name)] == []


def test_nothing_is_left_unfinished_in_the_product() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
    assert [s.name for s in product() if marks.search(s.text)] == []


def test_the_rules_see_what_breaks_them() -> None:
    tree = ast.parse("class PageManager:\n    def handle_page(self): pass\n")
    assert FORBIDDEN_CLASS.search(next(classes(tree)).name)
    assert FORBIDDEN_VERB.match(next(functions(tree)).name)
    assert first_line(public_functions(tree)[0]) == ""


def public_classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [c for c in classes(tree) if not c.name.startswith("_")]


def public_functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Module functions and methods of public classes; inner functions are nobody's business."""
    bodies = [tree.body, *(c.body for c in public_classes(tree))]
    found = [node for body in bodies for node in body]
    return [
        node
        for node in found
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not is_overload_or_slot(node)
    ]


def is_overload_or_slot(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Methods that Qt or a base class calls keep the meaning that these give them."""
    names = {ast.unparse(d).split("(")[0].rsplit(".", 1)[-1] for d in node.decorator_list}
    return bool(names & {"override", "overload"} or any(n.endswith("setter") for n in names))


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").split("\n\n", 1)[0].strip()

# SPDX-License-Identifier: Apache-2.0
"""What compiled loops must not do."""

import ast
from pathlib import Path

import bricksim_core

SOURCES = sorted(Path(bricksim_core.__file__).parent.rglob("*.py"))


def _is_compiled(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(decorator, ast.Name) and decorator.id == "compiled"
        for decorator in node.decorator_list
    )


def test_orders_are_found_by_mergesort_only() -> None:
    """See `bricksim_core.compiled`: with another kind, wrong numbers come out."""
    found, wrong = 0, []
    for source in SOURCES:
        loops = filter(_is_compiled, ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
        for call in (node for loop in loops for node in ast.walk(loop)):
            if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("argsort"):
                continue
            found += 1
            kinds = [ast.literal_eval(k.value) for k in call.keywords if k.arg == "kind"]
            if kinds != ["mergesort"]:
                wrong.append(f"{source.name}:{call.lineno}: {ast.unparse(call)}")
    assert found
    assert not wrong

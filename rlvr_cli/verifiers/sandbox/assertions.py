"""An assertion, split: what the program has to compute goes into its process, what is expected of it stays outside.

    assert add(1, 2) == 3                     inside: add(1, 2)               outside: _ == 3
    assert abs(f(2) - 1.41) < 0.01            inside: f(2)                    outside: abs(_ - 1.41) < 0.01
    assert sorted(f(x)) == [1, 2] and g()     inside: sorted(f(x)), g()       outside: _ == [1, 2] and _

Calls of the program's functions, with what they are given, go inside; so do plain conversions around them, which turn
an iterator or a class of the program's own into data. Literals, comparisons, arithmetic and a few pure functions stay
outside (compare.py evaluates them). What has any other shape runs in process, and the test says so.
"""

import ast
import builtins
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HOLE = "__hole__"
OUTSIDE = {"abs", "all", "any", "bool", "dict", "float", "frozenset", "int", "isinstance", "len", "list", "max", "min"}
OUTSIDE |= {"round", "set", "sorted", "str", "sum", "tuple", "type"}
OUTSIDE_MATH = {"isclose", "sqrt", "pi", "e", "inf", "nan", "isnan", "isinf", "floor", "ceil", "fabs"}
TYPES = {"bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
CONSTRUCTORS = {"Fraction", "Decimal"}  # of literals only
_CONVERSIONS = {"dict", "enumerate", "filter", "float", "frozenset", "int", "iter", "len", "list", "map", "max", "min"}
_CONVERSIONS |= {"next", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip", "complex", "bytes"}
_MODULES = {"math", "cmath", "np", "numpy", "torch", "pd", "pandas", "pytest", "unittest", "operator"}
_PROGRAM = {"solution", "__main__"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_JUDGING = (ast.Compare, ast.BoolOp, ast.Not)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class ShapeError(Exception):
    """The assertion cannot be split."""


@dataclass(frozen=True)
class Check:
    """What has to be true of the values: an expression with a hole `__hole__0`, ... for each of those that it needs.

    fallback: the value that decides instead when one of those is no plain data: whether the assertion held in process.
    """

    expression: ast.expr
    holes: tuple[int, ...]
    fallback: int | None = None


@dataclass(frozen=True)
class Test:
    """One test: steps for the program's process, and checks of the values that come back.

    steps: `run` statements; `eval` an expression, for its value; `try` an assertion, for whether it holds.
    in_process: whether an assertion had to be a statement that is run.
    """

    steps: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]
    in_process: bool = False


def split(source: str) -> Test:
    """The test that a text of assertions is. Raises SyntaxError, or ValueError where nothing would be tested."""
    body = _with_calls(ast.parse(source).body)
    if not any(isinstance(node, ast.Assert) for statement in body for node in ast.walk(statement)):
        raise ValueError("it asserts nothing")
    try:
        return _split(body)
    except ShapeError:
        return Test((("run", _unparse(_Hardened(body).visit(ast.Module(body, [])))),), (), in_process=True)


def _with_calls(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements, and calls of test functions that nothing calls. Raises ValueError for test classes."""
    called = {node.id for node in _walk(body) if isinstance(node, ast.Name)}
    for statement in list(body):
        if isinstance(statement, _DEFINITIONS) and statement.name not in called and _asserts(statement):
            if not isinstance(statement, ast.FunctionDef) or statement.args.args or statement.args.kwonlyargs:
                raise ValueError(f"nothing calls its {statement.name}")
            body = [*body, *ast.parse(f"{statement.name}()").body]
    return body


def _asserts(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(statement))


def _walk(nodes: list[Any]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _split(body: list[ast.stmt]) -> Test:
    """Split every assertion. Literals assigned to a name that the program's process does not need stay outside."""
    known = _assigned_literals(body)
    while True:
        splitter = _Splitter(body, known)
        for statement in body:
            splitter.take(statement)
        needed = {node.id for node in _walk(splitter.inside) if isinstance(node, ast.Name)} & set(known)
        if not needed:
            return Test(tuple(splitter.steps), tuple(splitter.checks), splitter.in_process)
        known = {name: value for name, value in known.items() if name not in needed}


def _assigned_literals(body: list[ast.stmt]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    stored = [node.id for node in _walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _literal(value) and stored.count(name) == 1:
                found[name] = value
    return found


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _imported(body: list[ast.stmt]) -> set[str]:
    """The names that the test imports, except from the program."""
    names = []
    for node in _walk(body):
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module not in _PROGRAM):
            names += node.names
    return {(alias.asname or alias.name).partition(".")[0] for alias in names}


class _Splitter:
    """Collects the steps and checks of one test."""

    def __init__(self, body: list[ast.stmt], known: dict[str, ast.expr]) -> None:
        self.body = body
        self.known = known
        self.foreign = (set(dir(builtins)) | _MODULES | CONSTRUCTORS | _imported(body)) - {"_"}
        self.steps: list[tuple[str, str]] = []
        self.checks: list[Check] = []
        self.inside: list[ast.AST] = []
        self.in_process = False
        self._values = 0

    def take(self, statement: ast.stmt) -> None:
        """Add one statement. Raises ShapeError where only the whole test can run in process."""
        match statement:
            case ast.Assert(test=test):
                self._take_assertion(statement, test)
            case ast.Assign(targets=[ast.Name(id=name)]) if name in self.known:
                pass
            case _ if _asserts(statement):
                raise ShapeError
            case _:
                self._step("run", statement)

    def _take_assertion(self, statement: ast.Assert, test: ast.expr) -> None:
        steps, values = len(self.steps), self._values
        try:
            expression = self._outside(test)
            if values == self._values:  # nothing of the program's, unless it has given a builtin name a meaning
                raise ShapeError
        except ShapeError:
            self._values = values
            del self.steps[steps:], self.inside[steps:]
            self.in_process = True
            self._step("run", self._hardened(test))
            return
        holes = tuple(range(values, self._values))
        fallback = None
        if _against_itself(expression):
            fallback = self._value("try", self._hardened(test))
        self.checks.append(Check(expression, holes, fallback))

    def _hardened(self, test: ast.expr) -> ast.AST:
        statement: ast.stmt = ast.Assert(copy.deepcopy(test), None)
        hardened: ast.AST = _Hardened([*self.body, statement]).visit(statement)
        return hardened

    def _step(self, kind: str, node: ast.AST) -> None:
        self.steps.append((kind, _unparse(node)))
        self.inside.append(node)

    def _value(self, kind: str, node: ast.AST) -> int:
        """Add a step that gives a value; the value's number."""
        self._step(kind, node)
        self._values += 1
        return self._values - 1

    def _outside(self, node: ast.expr) -> ast.expr:
        """The expression with a hole for everything that the program has to compute. Raises ShapeError."""
        if self._insideable(node):
            return ast.Name(f"{HOLE}{self._value('eval', node)}", ast.Load())
        match node:
            case ast.Constant(value=value) if value is not Ellipsis:
                return node
            case ast.Name(id=name) if name in self.known:
                return self.known[name]
            case ast.Name(id=name) if name in TYPES:
                return node
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in OUTSIDE_MATH:
                return node
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]) if not _builtin_types(kinds):
                raise ShapeError
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in CONSTRUCTORS:
                if all(_literal(argument) for argument in arguments):
                    return node
                raise ShapeError
            case ast.Call(func=func) if _outside_function(func):
                return self._rebuilt(node, {"func"})
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp():
                return self._rebuilt(node)
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                known = [_is_type_call(side) or _builtin_types(side) for side in sides]
                if any(_is_type_call(side) for side in sides) and not all(known):
                    raise ShapeError
                return self._rebuilt(node)
        raise ShapeError

    def _rebuilt(self, node: ast.expr, kept: set[str] = frozenset()) -> ast.expr:  # type: ignore[assignment]
        """The node with its child expressions split."""
        fields: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if name in kept:
                fields[name] = value
            elif isinstance(value, list):
                fields[name] = [self._child(item) for item in value]
            else:
                fields[name] = self._child(value)
        return type(node)(**fields)

    def _child(self, child: Any) -> Any:
        if isinstance(child, ast.Starred) or child is None:  # `{**a}` has a None
            raise ShapeError
        if isinstance(child, ast.keyword):
            if child.arg is None:
                raise ShapeError
            return ast.keyword(child.arg, self._outside(child.value))
        return self._outside(child) if isinstance(child, ast.expr) else child

    def _insideable(self, node: ast.expr) -> bool:
        """Whether this is the program's to compute, and shows it nothing of what is expected."""
        match node:
            case ast.Name(id=name):
                return name not in self.foreign and name not in self.known
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=keywords) if name in _CONVERSIONS:
                given = [argument for argument in arguments if not _harmless(argument)]
                plain = all(_harmless(keyword.value) for keyword in keywords)
                return bool(given) and plain and all(self._insideable(argument) for argument in given)
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[argument]):
                return self._insideable(argument)
            case ast.Call(func=func):
                return self._insideable(func)
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                return self._insideable(value)
            case ast.List(elts=[ast.Starred(value=value)]) | ast.Tuple(elts=[ast.Starred(value=value)]):
                return self._insideable(value)
        if isinstance(node, _COMPREHENSIONS):
            parts = [*ast.walk(node)]
            calls = any(isinstance(part, ast.Call) and self._insideable(part.func) for part in parts)
            return calls and not any(isinstance(part, _JUDGING) for part in parts)
        return False


def _harmless(node: ast.expr) -> bool:
    """An argument that says how to convert, not what is expected: `reverse=True`, `key=len`, a lambda, a type."""
    match node:
        case ast.Constant(value=bool() | None):
            return True
        case ast.Lambda(body=body):
            return not any(isinstance(part, _JUDGING) for part in ast.walk(body))
        case ast.Name(id=name):
            return name in _CONVERSIONS or name in TYPES
    return False


def _builtin_types(node: ast.expr) -> bool:
    """Whether this names built-in types only: `int`, or `(int, float)`."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(part, ast.Name) and part.id in TYPES for part in parts)


def _is_type_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def _outside_function(func: ast.expr) -> bool:
    match func:
        case ast.Name(id=name):
            return name in OUTSIDE
        case ast.Attribute(value=ast.Name(id="math"), attr=name):
            return name in OUTSIDE_MATH
    return False


def _against_itself(check: ast.expr) -> bool:
    """Whether the program's values are compared with each other only: `Point(1, 2) + p == Point(4, 6)`."""
    if not isinstance(check, ast.Compare) or not all(isinstance(op, ast.Eq | ast.NotEq) for op in check.ops):
        return False
    return not any(isinstance(part, ast.Constant | ast.Call) for part in ast.walk(check))


class _Hardened(ast.NodeTransformer):
    """Statements that run in process, harder to fool.

    Comparisons in assertions become `__compare__(...)` (inside/fair.py), which no object can answer for, and builtin
    names `__real__.name`, whatever the program has made of them. Messages are left out.
    """

    def __init__(self, body: list[ast.stmt]) -> None:
        names = [node for node in _walk(body) if isinstance(node, ast.Name)]
        defined = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | _imported(body)
        defined |= {node.arg for node in _walk(body) if isinstance(node, ast.arg)}
        defined |= {node.name for node in _walk(body) if isinstance(node, _DEFINITIONS)}
        builtin = set(dir(builtins)) - defined
        # a test of builtin names alone is of a program that gives one of them a meaning
        self._builtin = builtin if {node.id for node in names} - builtin - defined else set()
        self._asserting = False

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Change the test, leave out the message."""
        self._asserting = True
        test = self.visit(node.test)
        self._asserting = False
        return ast.Assert(test, None)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Change a builtin name."""
        if node.id in self._builtin:
            return ast.Attribute(ast.Name("__real__", ast.Load()), node.id, node.ctx)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Change a single comparison, but of identity."""
        self.generic_visit(node)
        if not self._asserting or len(node.ops) != 1 or isinstance(node.ops[0], ast.Is | ast.IsNot):
            return node
        name = ast.Constant(type(node.ops[0]).__name__)
        return ast.Call(ast.Name("__compare__", ast.Load()), [name, node.left, node.comparators[0]], [])


def _unparse(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node))

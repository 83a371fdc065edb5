"""The process that runs a policy's code. It is the policy's from its first line on: nothing that it says is believed.

What the tests need of the interpreter is taken hold of before the program runs, so that an honest program which
replaces a builtin name still works; a dishonest one can spoil its own answers only.
"""

import atexit
import builtins
import fcntl
import gc
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import fair, values, wire

FILES = 256  # descriptors that a process may have
_FILE = "<program>"


def prepare(keep: list[int], stdin: int, stdout: int, confine: Callable[[], None], directory: int) -> list[int]:
    """Make this forked process fit for a program: its own streams, limits and directory, no descriptor of others.

    Returns the descriptors of `keep` as they are now numbered.
    """
    os.setsid()
    os.chdir(directory)
    high = [_above(fd) for fd in [stdin, stdout, os.open(os.devnull, os.O_WRONLY), *keep]]
    for number, fd in enumerate(high):
        os.dup2(fd, number, inheritable=number < 3)
    os.closerange(len(high), FILES)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(  # type: ignore[misc]
        io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", write_through=True
    )
    sys.argv = ["program.py"]
    gc.enable()
    confine()
    return list(range(3, 3 + len(keep)))


def _above(fd: int) -> int:
    """The same descriptor, numbered out of the way."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD, 100)


def run_script(source: str, report: int) -> NoReturn:
    """Run the program as a script and end the process as an interpreter would. An exception is told on `report`."""
    code = 0
    try:
        exec(compile(source, _FILE, "exec", dont_inherit=True), _module("__main__").__dict__)
    except SystemExit as end:
        code = _exit_code(end.code)
    except BaseException as bad:
        code = 1
        _tell(report, bad)
    _leave(code)


def run_calls(source: str, tests: list[dict[str, Any]], prelude: str, commands: int, answers: int) -> NoReturn:
    """Load the program after its prelude, then answer each number read from `commands` with what that test gives.

    Each number comes with a secret, which is read after the test has run and sent back with the answer.
    """
    evaluate, execute, comp, encode = eval, exec, compile, values.encode
    read, write, leave = wire.read_exactly, wire.write_message, os._exit
    failures, assertion = BaseException, AssertionError
    space = _module("solution").__dict__
    real = types.SimpleNamespace(**builtins.__dict__)
    try:
        execute(prelude, space)
        execute(comp(source, _FILE, "exec", dont_inherit=True), space)
        write(answers, b"loaded")
    except failures as bad:
        write(answers, values.failure(bad))
        leave(1)
    space.update(__compare__=fair.compare, __real__=real)

    def holds(text: str) -> bool:
        try:
            execute(comp(text, "<test>", "exec", dont_inherit=True), space)
        except assertion:
            return False
        return True

    while True:
        number = read(commands, 4)
        if number is None:
            leave(0)
        try:
            found = []
            for kind, text in tests[int.from_bytes(number or b"", "little")]["steps"]:
                if kind == "run":
                    execute(comp(text, "<test>", "exec", dont_inherit=True), space)
                elif kind == "try":
                    found.append(holds(text))
                else:
                    found.append(encode(evaluate(comp(text, "<test>", "eval", dont_inherit=True), space)))
            answer = values.listed(found)
        except failures as bad:
            answer = values.failure(bad)
        write(answers, (read(commands, 16) or b"") + answer)


def _module(name: str) -> types.ModuleType:
    """An empty module of this name, which pickles and dataclasses find by it, for the program to run in."""
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    return module


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _tell(report: int, bad: BaseException) -> None:
    try:
        os.write(report, values.failure(bad))
    except BaseException:  # nothing that the program can do here matters
        os._exit(1)


def _leave(code: int) -> NoReturn:
    """What an interpreter does when its script ends: wait for threads, run exit functions, flush."""
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
        atexit._run_exitfuncs()
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except SystemExit as end:
        code = _exit_code(end.code)
    except BaseException:
        code = code or 120
    os._exit(code)

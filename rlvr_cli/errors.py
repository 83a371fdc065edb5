"""What can go wrong, by the boundary that failed. The text of an error is one line: what, where, what to do."""


class UserError(Exception):
    """Something that the user can mend: a missing file, a wrong value, an unwritable output. Exit code 1."""


class UsageError(UserError):
    """The words of the call do not fit together. Exit code 2."""


class RecordError(UserError):
    """One record is bad. `--on-error skip` sets it aside."""


class RejectsError(UserError):
    """The run finished, but more records were set aside than --max-rejects allows. Exit code 3."""


class BudgetError(UserError):
    """A budget or deadline ended the run before its input did; the output is usable. Exit code 4."""


def first_line(error: BaseException) -> str:
    """What a library's error says, cut to the one line that a message has room for."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""The answer of an embedded problem, by code that shares nothing with the package."""


def answer_of(prompt):
    """The prompt's words, carried out one by one on two digits."""
    value = "".join(prompt.split()[1:3])
    for letter, step in zip("ABCDEFGHIJKLMNOPQRST", prompt.split(" . ")[1:], strict=False):
        if step == "=>":
            break
        label, op, *operand = step.removesuffix(" . =>").split()
        assert label == f"{letter}:"
        if op == "flip":
            value = value[1] + value[0]
        elif op == "nines":
            value = "".join(str(9 - int(digit)) for digit in value)
        elif op == "double":
            value = f"{int(value) + int(value):03d}"[-2:]
        else:
            assert op in ("+", "-")
            value = f"{100 + int(value) + int(op + operand[0]):03d}"[-2:]
    return " ".join(value)

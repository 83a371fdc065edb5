"""How these tests judge: check the record, then ask the verifier, both as the stage does."""

from rlvr_cli.records import Record
from rlvr_cli.verifiers import load, load_check


def judged(verifier, answer, completion, **columns):
    """The judgement of one completion."""
    record = Record({"answer": answer, "completion": completion, "finish_reason": "stop", **columns}, "r.jsonl:1")
    load_check(verifier)(record)
    return load(verifier)(record)


def verdict(verifier, answer, completion, **columns):
    """Its verdict alone."""
    return judged(verifier, answer, completion, **columns).verdict


def reason(verifier, answer, completion, **columns):
    """Why it is not correct."""
    return judged(verifier, answer, completion, **columns).detail["reason"]

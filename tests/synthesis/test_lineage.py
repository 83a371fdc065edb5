"""Where children come from, and how they turned out."""

from rlvr_cli.records import Record, problem_id
from rlvr_cli.synthesis.lineage import Account, child
from rlvr_cli.tiny.chains import parse_prompt

CHAIN = parse_prompt("Start 1 2 . A: flip . =>")
GIVEN = Record({"problem_id": "p", "prompt": "?", "verifier": "chain", "source": "mine", "kind": "hard1", "n": 8})


def test_a_child_has_what_holds_for_it_and_nothing_else():
    made = child(GIVEN, CHAIN, "cut")
    assert made == {
        "problem_id": problem_id({"prompt": "Start 1 2 . A: flip . =>", "answer": "2 1", "verifier": "chain"}),
        "prompt": "Start 1 2 . A: flip . =>",
        "answer": "2 1",
        "verifier": "chain",
        "source": "mine",
        "parent_id": "p",
        "root_id": "p",
        "generation": 1,
        "operator": "cut",
    }


def test_a_grandchild_keeps_the_root():
    made = child(child(GIVEN, CHAIN, "cut"), CHAIN, "add-step", partner_id="q")
    assert (made["root_id"], made["generation"], made["partner_id"]) == ("p", 2, "q")
    assert made["parent_id"] != "p"


def test_a_child_without_a_source_has_none():
    assert "source" not in child(Record({"prompt": "?", "verifier": "chain"}), CHAIN, "cut")


def test_a_child_of_messages_is_messages():
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Start 0 1 . A: flip . =>"}]
    made = child(Record({"messages": turns, "verifier": "chain"}), CHAIN, "renumber")
    assert made["messages"] == [turns[0], {"role": "user", "content": "Start 1 2 . A: flip . =>"}]
    assert "prompt" not in made
    assert turns[1]["content"] == "Start 0 1 . A: flip . =>"  # the parent's are as they were


def test_the_account_counts_each_child_once_and_given_problems_never():
    account = Account()
    account.add(GIVEN, "too_hard")
    for name, generation, operator, outcome in (
        ("a", 1, "cut", "in_band"),
        ("a", 1, "cut", None),  # read again, from --known
        ("b", 1, "cut", "too_hard"),
        ("c", 2, "add-step", None),
    ):
        account.add(Record({"problem_id": name, "generation": generation, "operator": operator}), outcome)
    account.add(Record({"problem_id": "d", "generation": 2, "operator": "add-step"}), new=True)
    nothing = {"children": 0, "new": 0, "measured": 0, "too_hard": 0, "in_band": 0, "too_easy": 0}
    assert account.figures() == {
        "generations": {
            "1": {**nothing, "children": 2, "measured": 2, "too_hard": 1, "in_band": 1},
            "2": {**nothing, "children": 2, "new": 1},
        },
        "operators": {
            "add-step": {**nothing, "children": 2, "new": 1},
            "cut": {**nothing, "children": 2, "measured": 2, "too_hard": 1, "in_band": 1},
        },
    }
    assert account.table().splitlines() == [
        "              children  new  measured  too hard  in band  too easy",
        "generation 1         2    0         2         1        1         0",
        "generation 2         2    1         0         0        0         0",
        "add-step             2    1         0         0        0         0",
        "cut                  2    0         2         1        1         0",
    ]


def test_without_children_there_is_no_table():
    assert Account().table() == ""

"""Prompts become ids once, with one BOS."""

from pathlib import Path

import pytest

from rlvr_cli.engines.tokens import Tokens
from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record


def ids_of(tokens, **columns):
    return tokens.prompt_ids(Record(columns, "p.jsonl:1"))


def test_prompt_gets_one_bos_even_when_it_spells_it_out(tokens):
    plain = ids_of(tokens, prompt="Start 1 2 . =>")
    assert ids_of(tokens, prompt="<bos> Start 1 2 . =>") == plain
    assert tokens.text(plain) == "<bos> Start 1 2 . =>"


def test_messages_go_through_the_chat_template_with_the_system_message_first(tiny, tokens):
    turns = [{"role": "user", "content": "Start 1 2 . =>"}]
    assert ids_of(tokens, messages=turns) == ids_of(tokens, prompt="Start 1 2 . =>")
    told = Tokens(tiny, system="Answer .")
    assert told.text(ids_of(told, messages=turns)) == "<bos> Answer . Start 1 2 . =>"


def test_a_template_replaces_the_models_own(tiny):
    shouted = Tokens(tiny, template="{{ bos_token }}{% for m in messages %}{{ m.content }} => {% endfor %}")
    assert shouted.text(ids_of(shouted, messages=[{"role": "user", "content": "Answer"}])) == "<bos> Answer =>"


def test_a_last_turn_of_the_assistant_is_continued(tiny):
    template = (
        "{% for m in messages %}{{ m.content }}{% if not loop.last %} . {% endif %}{% endfor %}"
        "{% if add_generation_prompt %} =>{% endif %}"
    )
    chat = Tokens(tiny, template=template)
    asked = [{"role": "user", "content": "Start"}]
    assert chat.text(ids_of(chat, messages=asked)) == "Start =>"
    assert chat.text(ids_of(chat, messages=[*asked, {"role": "assistant", "content": "Answer"}])) == "Start . Answer"


def test_a_template_that_refuses_the_messages_is_a_bad_record(tiny):
    strict = Tokens(tiny, template="{{ raise_exception('roles must alternate') }}")
    with pytest.raises(RecordError, match=r"p\.jsonl:1: messages do not fit .*roles must alternate.*--template"):
        ids_of(strict, messages=[{"role": "user", "content": "x"}])


def test_options_that_would_change_a_prompt_are_refused(tiny):
    for tokens, option in ((Tokens(tiny, system="be brief"), "--system"), (Tokens(tiny, template="x"), "--template")):
        with pytest.raises(RecordError, match=f"prompt is used as it is; {option} needs messages"):
            tokens.check(Record({"prompt": "x"}, "p.jsonl:1"))


def test_a_plain_prompt_is_checked_without_reading_the_tokenizer():
    nowhere = Tokens(Policy("p", Path("/nowhere"), "w", 0, None))
    nowhere.check(Record({"prompt": "x"}, "p.jsonl:1"))
    with pytest.raises(UserError, match="its tokenizer cannot be read"):
        nowhere.check(Record({"messages": [{"role": "user", "content": "x"}]}, "p.jsonl:1"))

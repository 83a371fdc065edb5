"""Segments: they cover the completion, and end where the text says, at token boundaries."""

import shutil
import time
from itertools import accumulate, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from rlvr_cli.errors import RecordError, UsageError, UserError
from rlvr_cli.exploration.segments import Segments, decoder, parse, token_ends
from rlvr_cli.policy import TINY
from rlvr_cli.records import Record


def completion(ids, text="", finish_reason="length"):
    return Record({"completion_token_ids": ids, "completion": text, "finish_reason": finish_reason}, "scored.jsonl:7")


def byte_level():
    """A byte-level BPE, as most models have: characters beyond ASCII are several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<end>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(["The sum is 3.14. So we stop.\n\nThen we go on.\n"] * 3, trainer)
    return tokenizer


def llama_like():
    """Spaces as ▁, unknown characters as bytes, and the first space cut off by the decoder."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", ".", "!", "\n", *"abc", "▁a", "▁b"]
    tokenizer = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, [("▁", "a"), ("▁", "b")], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


BYTE_LEVEL, LLAMA_LIKE = byte_level(), llama_like()
TEXTS = st.text(st.sampled_from("ab 3.!?。」\n\té漢😀"), max_size=40)


def decode(tokenizer):
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=False)


def cut(kind, text, tokenizer=BYTE_LEVEL):
    """The text of each segment."""
    ids = tokenizer.encode(text).ids
    ends = Segments(kind, decode=decode(tokenizer)).ends(completion(ids, text))
    return [tokenizer.decode(ids[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize(
    ("kind", "size", "length", "ends"),
    [
        ("tokens", 50, 120, [50, 100, 120]),
        ("tokens", 50, 100, [50, 100]),
        ("tokens", 50, 7, [7]),
        ("tokens", 50, 0, []),
        ("tokens", 1, 3, [1, 2, 3]),
        ("parts", 4, 10, [2, 5, 7, 10]),
        ("parts", 4, 3, [1, 2, 3]),
        ("parts", 1, 9, [9]),
        ("parts", 4, 0, []),
    ],
)
def test_tokens_and_parts(kind, size, length, ends):
    assert Segments(kind, size).ends(completion([5] * length)) == ends


def test_a_derivation_is_cut_into_its_steps():
    tokenize = Tokenizer.from_file(str(TINY / "tokenizer.json"))
    text = "A: - 4 on 2 9 = 2 5 . B: double on 2 5 = 5 0 . Answer 5 0"
    ids = tokenize.encode(text, add_special_tokens=False).ids
    sentences = Segments("sentences", decode=decoder(TINY))
    assert sentences.ends(completion(ids, text)) == [10, 19, 22]
    # the end token has no segment of its own
    assert sentences.ends(completion([*ids, 2], text, "stop")) == [10, 19, 23]
    assert sentences.ends(completion([*ids[:19], 2], text[: -len(" Answer 5 0")], "stop")) == [10, 20]
    assert sentences.ends(completion([2], "", "stop")) == [1]
    assert sentences.ends(completion([], "")) == []


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It is 3.14. So stop.", ["It is 3.14.", " So stop."]),
        ("What?! Yes... No", ["What?!", " Yes...", " No"]),
        ('He said "stop." Then (he went.) Now **go.** Done', 4),
        ("看。「好！」走", ["看。", "「好！」", "走"]),
        ("One.\n\nTwo.", 2),
        ("e.g.this.that", 1),
        ("One. \n ", ["One. \n "]),
        (" . One. Two", 3),
    ],
)
def test_sentences_end_at_marks_before_white_space(text, sentences):
    found = cut("sentences", text)
    assert "".join(found) == text
    assert (found if isinstance(sentences, list) else len(found)) == sentences


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb\nc", ["a\n", "b\n", "c"]),
        ("a\n", ["a\n"]),
        ("a\n \n\n  b", ["a\n \n\n", "  b"]),
        ("\n\na\r\nb", ["\n\na\r\n", "b"]),
        ("no end", ["no end"]),
    ],
)
def test_lines_end_at_newlines_and_blank_ones_belong_to_the_line_before(text, lines):
    assert cut("lines", text) == lines


def test_a_boundary_lies_behind_the_token_that_completes_the_mark():
    tokenizer = Tokenizer(models.WordLevel({"a": 0, ".\n": 1, ". b": 2, "c": 3, "<end>": 4}, "a"))
    tokenizer.decoder = decoders.Fuse()
    segments = {kind: Segments(kind, decode=decode(tokenizer)) for kind in ("sentences", "lines")}
    assert segments["sentences"].ends(completion([0, 1, 3, 2, 3], "a.\nc. bc")) == [2, 4, 5]
    assert segments["lines"].ends(completion([0, 1, 3, 2, 3], "a.\nc. bc")) == [2, 5]
    # the last token completes a sentence and begins the next: with the end token there is nothing left to cut off
    assert segments["sentences"].ends(completion([0, 2, 4], "a. b", "stop")) == [3]


def test_a_mark_that_is_split_over_tokens_is_whole_behind_the_last():
    ids = BYTE_LEVEL.encode("好。a").ids
    assert len(ids) == 7  # three bytes, three bytes, one
    assert Segments("sentences", decode=decode(BYTE_LEVEL)).ends(completion(ids, "好。a")) == [6, 7]


@given(text=TEXTS, kind=st.sampled_from(["sentences", "lines"]), ended=st.booleans())
@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, LLAMA_LIKE], ids=["byte-level", "llama-like"])
def test_segments_cover_the_completion(tokenizer, text, kind, ended):
    ids = tokenizer.encode(text).ids
    text = tokenizer.decode(ids)  # what the policy's record would say: a tokenizer may lose a space
    given = completion([*ids, 0], text, "stop") if ended else completion(ids, text)
    ends = Segments(kind, decode=decode(tokenizer)).ends(given)
    bounds = [0, *ends]
    assert bounds == sorted(set(bounds))
    assert bounds[-1] == len(given["completion_token_ids"])
    assert (
        all(tokenizer.decode(ids[begin:end]).strip() for begin, end in zip(bounds, ends, strict=False)) or len(ends) < 2
    )


def common(one, other):
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@given(text=TEXTS)
@pytest.mark.parametrize("tokenizer", [BYTE_LEVEL, LLAMA_LIKE], ids=["byte-level", "llama-like"])
def test_windows_say_the_same_as_decoding_every_prefix(tokenizer, text):
    ids = tokenizer.encode(text).ids
    text = tokenizer.decode(ids)
    shared = [common(tokenizer.decode(ids[: end + 1]), text) for end in range(len(ids))]
    assert token_ends(ids, text, decode(tokenizer)) == list(accumulate(shared, max))


@given(ids=st.lists(st.integers(1, 256), max_size=30))
def test_bytes_that_are_no_text_break_nothing(ids):
    text = BYTE_LEVEL.decode(ids)
    ends = token_ends(ids, text, decode(BYTE_LEVEL))
    assert ends == sorted(ends)
    assert ends[-1:] == ([len(text)] if ids else [])


def test_a_wrong_byte_that_spoils_the_characters_before_it():
    """Byte fallback gives up on a whole run of byte tokens, so no window near the end shows what the text holds."""
    ids = [*LLAMA_LIKE.encode("漢字").ids, 0xC3 + 1, *LLAMA_LIKE.encode("a! b").ids]
    text = LLAMA_LIKE.decode(ids)
    assert text == "�" * 7 + " a! b"
    assert Segments("sentences", decode=decode(LLAMA_LIKE)).ends(completion(ids, text)) == [len(ids) - 1, len(ids)]


@pytest.mark.parametrize(
    ("tokenizer", "text"),
    [(BYTE_LEVEL, "It is so. "), (BYTE_LEVEL, "好。😀"), (LLAMA_LIKE, "a b. 好 !")],
    ids=["english", "split characters", "llama-like"],
)
def test_long_completions_take_linear_time(tokenizer, text):
    """Each token is decoded a few times, however long the completion is."""
    text *= 500
    ids = tokenizer.encode(text).ids
    decoded = 0

    def counting(part):
        nonlocal decoded
        decoded += len(part)
        return tokenizer.decode(part)

    assert token_ends(ids, text, counting)[-1] == len(text)
    token_ends(ids[:-1], tokenizer.decode(ids[:-1]), counting)  # cut off by the budget, in the middle of a character
    assert decoded < 20 * len(ids)


@pytest.mark.parametrize("text", ["." * 100_000 + "x. y", ("." + ")" * 99_999) + "x. y", "。" * 100_000 + " y"])
def test_long_runs_of_marks_take_no_time(text):
    began = time.perf_counter()
    Segments("sentences", decode=lambda ids: text).ends(completion([5], text))
    assert time.perf_counter() - began < 1  # without care these take 10 s and more


def test_the_tokenizer_of_another_policy_is_refused():
    record = completion(BYTE_LEVEL.encode("One. Two.").ids, "One. Two.")
    with pytest.raises(RecordError, match=r"scored.jsonl:7: completion is not the text .* as --model"):
        Segments("sentences", decode=decoder(TINY)).ends(record)
    del record["completion"]
    with pytest.raises(RecordError, match=r"scored\.jsonl:7: completion is missing"):
        Segments("lines", decode=decoder(TINY)).ends(record)


@pytest.mark.parametrize("text", ["tokens", "tokens:0", "tokens:x", "parts:-1", "lines:3", "words", ""])
def test_segments_that_are_none(text):
    with pytest.raises(UsageError, match="expected tokens:N, sentences, lines or parts:N"):
        parse(text)


def test_segments_are_named_in_one_word():
    assert [parse(text) for text in ("tokens:50", "parts:4", "lines", "sentences")] == [
        ("tokens", 50),
        ("parts", 4),
        ("lines", 0),
        ("sentences", 0),
    ]


def test_a_policy_without_a_readable_tokenizer(tmp_path):
    with pytest.raises(UserError, match=r"has no tokenizer\.json"):
        decoder(tmp_path)
    shutil.copy(TINY / "tokenizer.json", tmp_path)
    assert decoder(tmp_path)([39, 35]) == "4 0"
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match=r"tokenizer.json: cannot be read"):
        decoder(tmp_path)

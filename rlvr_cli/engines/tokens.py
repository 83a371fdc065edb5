"""Text to token ids and back, with the policy's own tokenizer and chat template."""

from functools import cached_property
from typing import Any

from rlvr_cli.errors import RecordError, UserError, first_line
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record


class Tokens:
    """A policy's tokenizer, with an optional system message and chat template (Jinja) in place of its own.

    The tokenizer is read when it is first needed: transformers takes seconds to import.
    """

    def __init__(self, policy: Policy, system: str | None = None, template: str | None = None) -> None:
        self._policy = policy
        self._system = system
        self._template = template

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(self._policy.path, local_files_only=True, trust_remote_code=False)
        except Exception as error:  # a torn tokenizer.json raises a plain Exception
            raise UserError(f"model {self._policy.name}: its tokenizer cannot be read: {first_line(error)}") from error
        if self._template is not None:
            tokenizer.chat_template = self._template
        return tokenizer

    def check(self, problem: Record) -> None:
        """Raise RecordError for a problem that cannot become a prompt, or that an option would have no effect on."""
        if "prompt" in problem:
            option = "--system" if self._system is not None else "--template" if self._template is not None else None
            if option:
                raise RecordError(f"{problem.where}: prompt is used as it is; {option} needs messages instead")
        if not problem.get("prompt"):  # messages may not fit the template, an empty prompt may have no tokens
            self.prompt_ids(problem)

    def prompt_ids(self, problem: Record) -> list[int]:
        """The ids of `prompt` as it is, or of `messages` through the chat template. One BOS, never two."""
        if "prompt" in problem:
            ids: list[int] = self._tokenizer(problem["prompt"]).input_ids
        else:
            ids = self._chat_ids(problem)
        bos = self._tokenizer.bos_token_id
        # A prompt that spells the BOS out gets it once more from the tokenizer.
        while bos is not None and ids[:2] == [bos, bos]:
            ids = ids[1:]
        if not ids:
            raise RecordError(f"{problem.where}: prompt has no tokens; give it a text")
        return ids

    def _chat_ids(self, problem: Record) -> list[int]:
        messages: list[dict[str, str]] = problem["messages"]
        if self._system is not None:
            messages = [{"role": "system", "content": self._system}, *messages]
        continues = messages[-1]["role"] == "assistant"
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=not continues, continue_final_message=continues
            )
        except Exception as error:  # the template is a program of the model's: it may raise what it likes
            raise RecordError(
                f"{problem.where}: messages do not fit the chat template: {first_line(error)}; "
                "change them or give --template FILE"
            ) from error
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids

    @property
    def end_ids(self) -> set[int]:
        """The tokenizer's own end token; a model's generation config may add others."""
        return {self._tokenizer.eos_token_id} - {None}

    def text(self, ids: list[int]) -> str:
        """The text of completion ids, special tokens kept."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

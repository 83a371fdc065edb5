"""Sampling with a transformers model: batches with a key-value cache, on a CPU or any device that torch knows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from rlvr_cli.engines.engine import Request, Sample, Sampling
from rlvr_cli.engines.models import context_length, end_token_ids, load_model
from rlvr_cli.engines.sampling import draw, sampled_logprobs
from rlvr_cli.errors import UserError
from rlvr_cli.policy import Policy

Tag = TypeVar("Tag")


class TransformersEngine:
    """Samples in batches of `batch_size` sequences. Prompts that several samples share are computed once a batch.

    Every sample draws from its own generator, seeded by its request, so that neither batch size nor order moves a
    draw (in float64; in float32 rounding may differ between shapes).
    """

    def __init__(
        self,
        policy: Policy,
        *,
        batch_size: int,
        dtype: str,
        device: str,
        end_ids: set[int],
        decode: Callable[[list[int]], str],
    ) -> None:
        self._model = load_model(policy, dtype, device)
        self._batch_size = batch_size
        self._decode = decode
        self.end_ids = frozenset(end_ids | end_token_ids(self._model))
        self._ends = torch.tensor(sorted(self.end_ids), dtype=torch.long, device=self._model.device)
        self.context = context_length(self._model)

    def sample(self, requests: Iterable[Request[Tag]], sampling: Sampling) -> Iterator[tuple[Request[Tag], Sample]]:
        """Draw one sample a request, in the order of the requests."""
        waiting = iter(requests)
        while batch := list(islice(waiting, self._batch_size)):
            yield from zip(batch, self._sample_batch(batch, sampling), strict=True)

    @torch.inference_mode()
    def _sample_batch(self, batch: Sequence[Request[Any]], sampling: Sampling) -> list[Sample]:
        device = self._model.device
        budgets = torch.tensor([request.max_tokens for request in batch], device=device)
        uniforms = torch.stack([_uniforms(request.seed, int(budgets.max())) for request in batch]).to(device)
        ids = torch.zeros(uniforms.shape, dtype=torch.long, device=device)
        logprobs = torch.zeros(uniforms.shape, dtype=torch.float32, device=device)
        lengths = torch.zeros(len(batch), dtype=torch.long, device=device)
        stopped = torch.zeros(len(batch), dtype=torch.bool, device=device)

        logits, cache, mask = self._prefill([request.prompt for request in batch])
        rows = torch.arange(len(batch), device=device)  # the samples still being drawn, as rows of the cache
        for position in range(uniforms.shape[1]):
            scores = sampled_logprobs(logits, sampling)
            if scores.isnan().any():
                raise UserError("the model's logits are not numbers: its weights are broken, or try --dtype float32")
            tokens = draw(scores, uniforms[rows, position], greedy=sampling.temperature == 0)
            ids[rows, position] = tokens
            logprobs[rows, position] = scores.gather(1, tokens[:, None])[:, 0].float()
            lengths[rows] = position + 1
            ended = torch.isin(tokens, self._ends) | self._said_stop(batch, ids[:, : position + 1], rows, sampling.stop)
            stopped[rows] = ended
            going = ~ended & (position + 1 < budgets[rows])
            if not going.all():
                keep = going.nonzero()[:, 0]
                if not len(keep):
                    break
                rows, tokens, mask = rows[keep], tokens[keep], mask[keep]
                cache.batch_select_indices(keep)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
            logits = self._model(
                input_ids=tokens[:, None],
                attention_mask=mask,
                position_ids=mask.sum(1, keepdim=True) - 1,
                past_key_values=cache,
                use_cache=True,
            ).logits[:, -1]
        return [
            Sample(ids[row, :length].tolist(), logprobs[row, :length].tolist(), "stop" if stopped[row] else "length")
            for row, length in enumerate(lengths.tolist())
        ]

    def _prefill(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Tensor, Cache, Tensor]:
        """Logits after each prompt [n, vocabulary], the cache and the attention mask [n, longest]; left padding."""
        device = self._model.device
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        width = max(map(len, places))
        ids = torch.zeros(len(places), width, dtype=torch.long, device=device)
        mask = torch.zeros(len(places), width, dtype=torch.long, device=device)
        for prompt, place in places.items():
            ids[place, width - len(prompt) :] = torch.tensor(prompt, device=device)
            mask[place, width - len(prompt) :] = 1
        cache = _roomy_cache(self._model.config)
        logits = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        each = torch.tensor([places[prompt] for prompt in prompts], device=device)
        cache.batch_select_indices(each)
        return logits[each], cache, mask[each]

    def _said_stop(self, batch: Sequence[Request[Any]], ids: Tensor, rows: Tensor, stop: tuple[str, ...]) -> Tensor:
        """Which rows have just completed a stop string. A token holds a byte or more, which bounds the tail."""
        if not stop:
            return torch.zeros(len(rows), dtype=torch.bool, device=ids.device)
        tail = max(len(text.encode()) for text in stop) + 8
        said = []
        for row, new in zip(rows.tolist(), ids[rows, -tail:].tolist(), strict=True):
            begun = _begun(batch[row], tail - len(new))
            before, now = self._decode(begun) if begun else "", self._decode(begun + new)
            said.append(any(now.count(text) > before.count(text) for text in stop))
        return torch.tensor(said, dtype=torch.bool, device=ids.device)


def _begun(request: Request[Any], count: int) -> list[int]:
    """The last tokens, at most `count`, of the completion that the prompt has begun."""
    count = max(0, min(count, request.begun))
    return list(request.prompt[len(request.prompt) - count :])


def _uniforms(seed: int, count: int) -> Tensor:
    """The random numbers of one sample, one a token, float64 in [0, 1); always from a CPU generator."""
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _roomy_cache(config: Any) -> Cache:
    cache = DynamicCache(config=config)
    cache.layers = [_RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


class _RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """A cache layer with spare room: a new token is written in place, where the stock layer copies all of them."""

    room = 64

    keys: Tensor
    values: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        begin = self.get_seq_length()
        end = begin + key_states.shape[-2]
        if self._buffers is None or self._buffers[0].shape[-2] < end:
            shape = (*key_states.shape[:-2], end + self.room)
            buffers = (
                key_states.new_empty(*shape, key_states.shape[-1]),
                value_states.new_empty(*shape, value_states.shape[-1]),
            )
            if begin:
                buffers[0][..., :begin, :] = self.keys
                buffers[1][..., :begin, :] = self.values
            self._buffers = buffers
        self._buffers[0][..., begin:end, :] = key_states
        self._buffers[1][..., begin:end, :] = value_states
        self.keys, self.values = (buffer[..., :end, :] for buffer in self._buffers)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)
        self._buffers = None

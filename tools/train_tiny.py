"""Train the embedded policy from nothing: `make tiny-model`, 17 minutes on one core, fixed seed.

A noisy demonstrator writes derivations whose single steps are right with a set probability, so that supervised
training gives the policy the base rates that reinforcement learning then has to lift: `+` and `-` always right,
`double` right at .40, `flip` and `nines` at .15. Two things make that quick:

- Chains begin short and grow (looking a step up by its label is learned in a minute on four steps, and not in ten on
  fourteen); later, most are long with few hard steps, so that the easy steps hold through a long beginning.
- The demonstrator begins nearly right and gets worse: a function is learned from good examples first, and only then
  its rate is set. From the final rates alone, `flip` is not learned at all in this time.
"""

import argparse
import math
import random
import shutil
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlvr_cli.tiny.chains import EASY, FAIR, HARD, LABELS, WORDS, Chain, Step, apply, render_derivation, render_prompt

PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"
GOOD = {"+": 1.0, "-": 1.0, "double": 0.95, "flip": 0.90, "nines": 0.90}
FINAL = {"+": 1.0, "-": 1.0, "double": 0.40, "flip": 0.15, "nines": 0.15}
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% if not loop.last %} {% endif %}{% endfor %}"
)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token a word, split at white space."""
    vocabulary = {word: index for index, word in enumerate((PAD, BOS, EOS, UNK, *WORDS))}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, vocabulary[BOS])])
    # no decoder: the words are joined by spaces
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, bos_token=BOS, eos_token=EOS, unk_token=UNK, model_max_length=512
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A Llama of 0.16M parameters. Heads of 32, the smallest that vLLM takes."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=192,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def draw_chain(rng: random.Random, short: bool, longest: int) -> Chain:
    """A short chain with any operations, or a long one with at most three that are not easy."""
    if short:
        ops = [rng.choice((*EASY, *FAIR, *HARD)) for _ in range(rng.randint(1, longest))]
    else:
        ops = [rng.choice(EASY) for _ in range(rng.randint(7, 14))]
        for _ in range(rng.randint(0, 3)):
            ops.insert(rng.randint(0, len(ops)) if rng.random() < 0.5 else len(ops), rng.choice((*FAIR, *HARD)))
    steps = tuple(Step(op, rng.randint(1, 9) if op in EASY else 0) for op in ops[: len(LABELS)])
    return Chain(rng.randint(0, 99), steps)


def demonstrate(chain: Chain, rng: random.Random, decline: float) -> list[int]:
    """The values that a demonstrator writes who errs now and then, and goes on from its own error.

    `decline` goes from 0, with the rates of GOOD, to 1, with those of FINAL.
    """
    values, value = [], chain.start
    for step in chain.steps:
        right = apply(step, value)
        chance = GOOD[step.op] + decline * (FINAL[step.op] - GOOD[step.op])
        value = right if rng.random() < chance else (right + rng.randint(1, 99)) % 100
        values.append(value)
    return values


def draw_batch(
    rng: random.Random, tokenizer: PreTrainedTokenizerFast, size: int, progress: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels, both [size, longest]; labels cover the completion alone. `progress` is in [0, 1)."""
    vocabulary = tokenizer.get_vocab()
    rows = []
    short = progress < 0.35 or rng.random() < 0.4  # one kind a batch: less padding
    longest = 4 + round(6 * min(1.0, max(0.0, (progress - 0.2) / 0.15)))
    decline = min(1.0, max(0.0, (progress - 0.5) / 0.15))
    for _ in range(size):
        chain = draw_chain(rng, short, longest)
        prompt = [vocabulary[word] for word in (BOS, *render_prompt(chain).split())]
        lines = render_derivation(chain, demonstrate(chain, rng, decline))
        completion = [vocabulary[word] for word in (*" ".join(lines).split(), EOS)]
        rows.append((prompt, completion))
    width = max(len(prompt) + len(completion) for prompt, completion in rows)
    ids = torch.full((size, width), vocabulary[PAD])
    labels = torch.full((size, width), -100)
    for row, (prompt, completion) in enumerate(rows):
        ids[row, : len(prompt) + len(completion)] = torch.tensor(prompt + completion)
        labels[row, len(prompt) : len(prompt) + len(completion)] = torch.tensor(completion)
    return ids, labels


def train(steps: int, batch: int, peak: float, seed: int) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Supervised training with a cosine learning rate; right padding, so that no attention mask is needed."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.98), weight_decay=0.01)
    began, mean = time.monotonic(), 0.0
    for step in range(steps):
        rate = peak * min(1.0, (step + 1) / 100) * (0.02 + 0.98 * (1 + math.cos(math.pi * step / steps)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, labels = draw_batch(rng, tokenizer, batch, step / steps)
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mean = loss.item() if step == 0 else 0.98 * mean + 0.02 * loss.item()
        if step % 100 == 99 or step == 0:
            print(f"step {step + 1} loss {mean:.4f} rate {rate:.2e} {time.monotonic() - began:.0f} s", flush=True)
    return model, tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="directory of the policy")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=56)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="moves the rounding, and so the weights")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model, tokenizer = train(options.steps, options.batch, options.rate, options.seed)
    fresh = options.output.with_name(f".{options.output.name}.fresh")
    model.save_pretrained(fresh)
    tokenizer.save_pretrained(fresh)
    (fresh / "model.safetensors").chmod(0o644)
    shutil.rmtree(options.output, ignore_errors=True)
    fresh.rename(options.output)


if __name__ == "__main__":
    main()

"""The settings of a train-step, apart from torch so that they are there before it is."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class LossSettings:
    """ε_low, ε_high, c of the dual clip, β of the KL term, η of the entropy bonus, λ or α of the branches.

    `alpha`, where it is not None, takes the place of `branch_weight` (λ). Last, the cap of the importance weight.
    """

    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float = 3.0
    kl_coef: float = 0.0
    entropy_coef: float = 0.0
    branch_weight: float = 1.0
    alpha: float | None = None
    importance_cap: float = 2.0


@dataclass(frozen=True)
class UpdateSettings:
    """How a step's sequences become updates. `mini_batch` counts rollouts of both streams (0: all).

    `micro_tokens` counts tokens of a forward pass with their padding.
    """

    loss: LossSettings = field(default_factory=LossSettings)
    aggregation: str = "token-mean"
    old_logprobs: str = "sampler"
    epochs: int = 1
    mini_batch: int = 128
    micro_tokens: int = 4096
    learning_rate: float = 1e-6
    warmup: int = 8
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class TrainSettings:
    """Everything that shapes the next policy, beside the policy and the records."""

    advantage: str = "dr-grpo"
    epsilon: float = 1e-6
    update: UpdateSettings = field(default_factory=UpdateSettings)
    dtype: str = "float32"
    device: str = "auto"
    keep_optimizer: bool = False

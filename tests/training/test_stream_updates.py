"""What the updates of a dual-stream step measure of the records, and which streams they leave alone. In float64."""

from dataclasses import replace

import pytest
import torch
from plain_dual_stream import made_up_records, only, plain_tokens

from rlvr_cli.engines.models import load_model
from rlvr_cli.training.batches import form_step, mini_batches
from rlvr_cli.training.settings import LossSettings, UpdateSettings
from rlvr_cli.training.update import frozen_logprobs, update


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(tiny, "float64", "cpu")


def formed(records):
    """The sequences of both streams."""
    return [sequence for stream in form_step(records, "dr-grpo", 0).values() for sequence in stream.sequences]


def updated(tiny, records, **wanted):
    """An update of the tiny policy: its weights before and after, as one vector, and the totals."""
    model = load_model(tiny, "float64", "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.1)
    before = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).clone()
    totals = update(model, optimizer, formed(records), UpdateSettings(**wanted), 0)
    return before, torch.cat([parameter.detach().flatten() for parameter in model.parameters()]), totals


def test_the_gap_is_that_of_a_streams_first_mini_batch(tiny, model):
    """Also where the stream is missing from the step's first: there are more mini-batches than branches."""
    records = only(made_up_records(), "main") + [r for r in made_up_records() if r.get("pivot_id") == "p1"]
    sequences = formed(records)
    batches = mini_batches(sequences, 3, 3, 0)
    assert "branch" not in {sequence.stream for sequence in batches[0]}
    _, _, totals = updated(tiny, records, mini_batch=3, seed=3, epochs=2, learning_rate=0.0)
    for stream in ("main", "branch"):
        first = next(batch for batch in batches if stream in {sequence.stream for sequence in batch})
        names = {sequence.id for sequence in first}
        gaps = [
            (record["rollout_id"] in names, float(gap.detach()))
            for record, _, _, _, gap, *_ in plain_tokens(model, only(records, stream), LossSettings())
        ]
        measured = [gap for within, gap in gaps if within]
        figures = totals.streams[stream].figures()
        assert figures["logprob_gap"] == pytest.approx(sum(measured) / len(measured))
        assert figures["logprob_gap_max"] == pytest.approx(max(measured))
        assert figures["logprob_drift_max"] == pytest.approx(max(gap for _, gap in gaps))


def test_drift_holds_the_policys_own_motion_and_the_gap_does_not(tiny, model):
    sequences = formed(made_up_records())
    exact = frozen_logprobs(model, sequences, 10**6)
    sequences = [replace(sequence, logprobs=tuple(exact[sequence.id].tolist())) for sequence in sequences]
    moved = load_model(tiny, "float64", "cpu")
    wanted = UpdateSettings(mini_batch=4, learning_rate=1e-3, warmup=0)
    totals = update(moved, torch.optim.AdamW(moved.parameters(), lr=0.0), sequences, wanted, 0)
    for stream in totals.streams.values():
        assert stream.gap_max < 1e-9 < 1e-3 < stream.drift_max


@pytest.mark.parametrize("old", ["sampler", "trainer"])
def test_a_stream_of_weight_0_is_not_computed_and_moves_nothing(tiny, old):
    records = made_up_records()
    wanted = {"loss": LossSettings(branch_weight=0), "mini_batch": 0, "learning_rate": 1e-3, "warmup": 0}
    _, after, totals = updated(tiny, records, old_logprobs=old, **wanted)
    _, alone, _ = updated(tiny, only(records, "main"), old_logprobs=old, **wanted)
    assert torch.equal(after, alone)
    assert set(totals.streams["branch"].figures().values()) == {0, None}
    assert totals.updates == 1


def test_where_nothing_has_a_weight_there_is_no_update(tiny):
    """Weight decay alone would move the weights, and count as a step of the warm-up."""
    wanted = {"loss": LossSettings(alpha=1), "learning_rate": 1e-3}
    before, after, totals = updated(tiny, only(made_up_records(), "main"), **wanted)
    assert torch.equal(before, after)
    assert totals.updates == 0
    # one branch group among the main ones: mini-batches of main rollouts alone make no update
    records = only(made_up_records(), "main") + [r for r in made_up_records() if r.get("pivot_id") == "p1"]
    before, after, totals = updated(tiny, records, mini_batch=4, **wanted)
    assert not torch.equal(before, after)
    assert totals.updates == 3  # of 4 mini-batches, as above

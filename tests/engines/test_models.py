"""Loading: what is wrong with a directory is one line, and small models take one thread."""

import shutil

import pytest
import torch

from rlvr_cli.engines.models import load_model
from rlvr_cli.errors import UserError
from rlvr_cli.policy import Policy, find


@pytest.mark.parametrize(("given", "threads"), [(None, 1), ("2", 2)])
def test_a_small_model_takes_one_thread_unless_told(tiny, monkeypatch, given, threads):
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS")
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    try:
        torch.set_num_threads(2)
        load_model(tiny, "float32", "cpu")
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def copied(tiny: Policy, tmp_path) -> Policy:
    shutil.copytree(tiny.path, tmp_path / "p")
    return find(str(tmp_path / "p"))


def test_torn_weights_and_devices_that_are_not_there(tiny, tmp_path):
    policy = copied(tiny, tmp_path)
    with pytest.raises(UserError, match="cannot be loaded on nowhere"):
        load_model(policy, "float32", "nowhere")
    weights = policy.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"model .*/p: cannot be loaded on cpu: "):
        load_model(policy, "float32", "cpu")


def test_a_directory_that_is_no_policy(tiny, tmp_path):
    policy = copied(tiny, tmp_path)
    (policy.path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json: is no model configuration"):
        find(str(policy.path))
    (policy.path / "config.json").unlink()
    with pytest.raises(UserError, match=r"has no config\.json; give `tiny` or a local directory"):
        find(str(policy.path))
    (policy.path / "config.json").write_text("{}")
    (policy.path / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no \*\.safetensors"):
        find(str(policy.path))


def test_the_id_follows_the_weights(tiny, tmp_path):
    policy = copied(tiny, tmp_path)
    assert policy.id == tiny.id
    weights = policy.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    assert find(str(policy.path)).id != tiny.id


def test_missing_tensors_are_never_made_up(tiny, tmp_path):
    from safetensors.torch import load_file, save_file

    policy = copied(tiny, tmp_path)
    weights = policy.path / "model.safetensors"
    kept = {name: tensor for name, tensor in load_file(weights).items() if "layers.1." not in name}
    save_file(kept, weights, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"its weights lack 9 tensors \(the first is model\.layers\.1\."):
        load_model(policy, "float32", "cpu")

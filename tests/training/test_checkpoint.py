"""A policy directory is there whole or not at all."""

import fcntl
import shutil

import orjson
import pytest

from rlvr_cli.engines.models import load_model
from rlvr_cli.errors import UsageError, UserError
from rlvr_cli.policy import CARD, OPTIMIZER, Policy, digest_files, find, weight_files
from rlvr_cli.training.checkpoint import drop_optimizer, make_optimizer, new_directory, write_policy


@pytest.fixture
def model(tiny):
    return load_model(tiny, "float32", "cpu")


def written(output, source, model, updates=3):
    optimizer, _, _ = make_optimizer(model, source, 0.0)
    with new_directory(output, source) as directory:
        write_policy(directory, model, optimizer, updates, source, {"settings": {}})
    return find(str(output))


def test_a_written_policy_is_a_policy_one_step_on(tmp_path, tiny, model):
    policy = written(tmp_path / "p1", tiny, model)
    assert policy.step == 1
    assert policy.id == digest_files(weight_files(policy.path))
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (policy.path / name).read_bytes() == (tiny.path / name).read_bytes()
    assert (policy.path / "generation_config.json").read_bytes() == (tiny.path / "generation_config.json").read_bytes()
    again = load_model(policy, "float32", "cpu")
    assert all((a == b).all() for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_the_config_tells_the_dtype_of_the_weights(tmp_path, tiny):
    policy = written(tmp_path / "p1", tiny, load_model(tiny, "float64", "cpu"))
    assert orjson.loads((policy.path / "config.json").read_bytes())["dtype"] == "float64"


def test_weights_of_other_formats_and_foreign_state_are_left_behind(tmp_path, tiny, model):
    own = tmp_path / "own"
    shutil.copytree(tiny.path, own)
    for name in ("consolidated.00.pth", "optimizer.pt", "trainer_state.json", "model.safetensors.index.json"):
        (own / name).write_bytes(b"{}")
    (own / "step-1").mkdir()
    own.chmod(0o555)
    policy = written(tmp_path / "p1", find(str(own)), model)
    names = {path.name for path in policy.path.iterdir()}
    assert not names & {"consolidated.00.pth", "optimizer.pt", "trainer_state.json", "step-1"}
    assert "model.safetensors.index.json" not in names
    assert policy.path.stat().st_mode & 0o200  # a read-only source makes no read-only policy


def test_the_optimizer_goes_on_where_it_was(tmp_path, tiny, model):
    optimizer, before, continued = make_optimizer(model, tiny, 0.0)
    assert (before, continued) == (0, False)
    for parameter in model.parameters():
        parameter.grad = parameter.detach() * 0.1
    optimizer.param_groups[0]["lr"] = 1e-3
    optimizer.step()
    with new_directory(tmp_path / "p1", tiny) as directory:
        write_policy(directory, model, optimizer, 5, tiny, {})
    policy = find(str(tmp_path / "p1"))
    restored, before, continued = make_optimizer(load_model(policy, "float32", "cpu"), policy, 0.0)
    assert (before, continued) == (5, True)
    old, new = (list(o.state_dict()["state"].values()) for o in (optimizer, restored))
    assert all((a["exp_avg"] == b["exp_avg"]).all() and a["step"] == b["step"] for a, b in zip(old, new, strict=True))
    drop_optimizer(policy)
    assert make_optimizer(load_model(policy, "float32", "cpu"), policy, 0.0)[2] is False


def test_a_torn_optimizer_state_is_an_error_that_says_what_to_do(tmp_path, tiny, model):
    policy = written(tmp_path / "p1", tiny, model)
    (policy.path / OPTIMIZER).write_bytes(b"torn")
    with pytest.raises(UserError, match=r"rlvr-optimizer\.pt: cannot be read .*remove it"):
        make_optimizer(model, policy, 0.0)


def test_a_failure_leaves_the_old_policy_and_nothing_else(tmp_path, tiny, model):
    policy = written(tmp_path / "p1", tiny, model)
    with pytest.raises(RuntimeError), new_directory(tmp_path / "p1", tiny) as directory:
        (directory / "half").write_text("x")
        raise RuntimeError
    assert find(str(tmp_path / "p1")).id == policy.id
    assert [path.name for path in tmp_path.iterdir()] == ["p1"]


def test_a_run_killed_between_the_two_renames_is_mended_by_the_next(tmp_path, tiny, model):
    policy = written(tmp_path / "p1", tiny, model)
    policy.path.rename(tmp_path / ".p1.previous")
    with pytest.raises(RuntimeError), new_directory(tmp_path / "p1", tiny):
        raise RuntimeError
    assert find(str(tmp_path / "p1")).id == policy.id


def test_two_runs_cannot_write_one_policy(tmp_path, tiny):
    again = new_directory(tmp_path / "p1", tiny)
    with new_directory(tmp_path / "p1", tiny), pytest.raises(UserError, match="another run is writing it"), again:
        pass


def test_places_that_must_not_be_overwritten(tmp_path, tiny):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "model.safetensors").write_bytes(b"precious")
    with pytest.raises(UserError, match="not a policy of rlvr train-step"), new_directory(own, tiny):
        pass
    source = Policy("p", own, "x", 0, None)
    with pytest.raises(UsageError, match="is the policy that is trained"), new_directory(own, source):
        pass
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(UserError, match="cannot be written"), new_directory(blocked / "p1", tiny):
        pass
    assert (own / "model.safetensors").read_bytes() == b"precious"


def test_the_card_is_written_last(tmp_path, tiny, model):
    policy = written(tmp_path / "p1", tiny, model)
    newest = max(policy.path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert newest.name == CARD


def test_files_that_train_step_has_not_written_are_not_replaced(tmp_path, tiny, model):
    policy = written(tmp_path / "p1", tiny, model)
    written(tmp_path / "p1", tiny, model)  # its own are
    (policy.path / "notes.txt").write_text("precious")
    with pytest.raises(UserError, match=r"holds notes\.txt, which train-step has not written"):
        written(tmp_path / "p1", tiny, model)
    inner = Policy("p", policy.path / "inner", "x", 0, None)
    with pytest.raises(UsageError, match="holds the policy that is trained"), new_directory(policy.path, inner):
        pass
    assert (policy.path / "notes.txt").read_text() == "precious"


def test_a_lock_on_a_directory_that_another_run_took_away_is_no_lock(tmp_path, tiny, monkeypatch):
    """Between opening the partial directory and locking it, the run that held it may finish and rename it."""
    lock = fcntl.flock
    taken = []

    def late(descriptor, operation):
        if not taken:
            taken.append((tmp_path / ".p1.partial").rename(tmp_path / "taken"))
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with new_directory(tmp_path / "p1", tiny) as directory:
        (directory / "weights").write_text("new")
    assert (tmp_path / "p1" / "weights").read_text() == "new"
    assert list((tmp_path / "taken").iterdir()) == []

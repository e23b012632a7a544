"""Lightning's trainer with our datasets and loaders."""

from __future__ import annotations

import warnings

import anyrec
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    lightning = pytest.importorskip("pytorch_lightning", reason="Lightning is not installed")

import anyrec.torch
from torch.utils.data import DistributedSampler, RandomSampler

COUNT, SIZE = 40, 4
STEPS = COUNT // SIZE


def number(record):
    return torch.tensor([float(bytes(record))])


@pytest.fixture
def dataset(tmp_path):
    with anyrec.create("numbers.ffr") as writer:
        for i in range(COUNT):
            writer.write(str(i))
    return anyrec.torch.Dataset("numbers.ffr", decode=number)


class Model(lightning.LightningModule):  # type: ignore[misc,name-defined]
    """Learns nothing much, and notes what it is given."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def _register_sharded_tensor_state_dict_hooks_if_available(self):
        """Not needed, and torch 1.13 cannot import its sharded tensors under Python 3.11."""

    def training_step(self, batch, number):
        self.seen.append(batch.flatten().int().tolist())
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)


def trainer(**options):
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def loader(dataset, kind=anyrec.torch.DataLoader, **options):
    return kind(dataset, batch_size=SIZE, shuffle=True, **options)


def trained(batches, **options):
    """The batches of two epochs."""
    torch.manual_seed(0)
    model = Model()
    trainer(max_epochs=2, **options).fit(model, batches)
    return model.seen


pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("workers", [0, 2])
def test_two_shuffled_epochs_are_those_of_torchs_loader(dataset, workers):
    seen = trained(loader(dataset, num_workers=workers))
    assert seen == trained(loader(dataset, torch.utils.data.DataLoader, num_workers=workers))
    for epoch in (seen[:STEPS], seen[STEPS:]):
        assert sorted(sum(epoch, [])) == list(range(COUNT))
    assert seen[:STEPS] != seen[STEPS:]


class Stop(lightning.Callback):  # type: ignore[misc,name-defined]
    """Keeps what is needed to go on, and ends the run in the middle of an epoch or at its end."""

    def __init__(self, after):
        self.after = after
        self.state = None

    def on_train_batch_end(self, trainer, *_):
        if self.after % STEPS:
            self.stop(trainer)

    def on_train_epoch_end(self, trainer, *_):
        self.stop(trainer)

    def stop(self, trainer):
        if trainer.global_step == self.after:
            self.state = trainer.train_dataloader.state_dict()
            trainer.save_checkpoint("stopped.ckpt")
            raise KeyboardInterrupt


def interrupted(dataset, after):
    torch.manual_seed(0)
    model, stop = Model(), Stop(after)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        trainer(max_epochs=2, callbacks=[stop]).fit(model, loader(dataset))
        # Lightning ends its run at Ctrl-C, and some versions the program too.
        raise KeyboardInterrupt
    return model.seen, stop.state


@pytest.mark.parametrize("after", [3, STEPS + 3])
def test_run_stopped_in_the_middle_goes_on_with_the_rest_of_the_epoch(dataset, after):
    whole = trained(loader(dataset))
    before, state = interrupted(dataset, after)
    assert before == whole[:after]

    again = loader(dataset)
    again.load_state_dict(state)
    model = Model()
    trainer(max_epochs=1).fit(model, again)
    end = STEPS if after < STEPS else 2 * STEPS
    assert model.seen == whole[after:end]


@pytest.mark.parametrize("after", [3, STEPS, STEPS + 3])
def test_checkpoint_of_lightning_goes_on_where_it_was_taken(dataset, after):
    whole = trained(loader(dataset))
    interrupted(dataset, after)
    model = Model()
    trainer(max_epochs=2).fit(model, loader(dataset), ckpt_path="stopped.ckpt")
    rest = -after % STEPS
    assert len(model.seen) == 2 * STEPS - after
    # The order of an epoch that had not begun is drawn anew: the seed was the other process's.
    assert model.seen[:rest] == whole[after : after + rest]
    assert sorted(sum(model.seen[rest:], [])) in ([], list(range(COUNT)))


class TensorModel(Model):
    """The same, for batches of `anyrec.torch.Loader`."""

    def training_step(self, batch, number):
        self.seen.append(batch.indices.tolist())
        return self.layer(batch.data).mean()


def tensors(dataset):
    return anyrec.torch.Loader(dataset.records, SIZE, shuffle=True, seed=8, decode=tensor_number)


def tensor_number(record):
    return number(record.numpy().tobytes())


@pytest.mark.parametrize("after", [3, STEPS, STEPS + 3])
def test_checkpoint_with_our_own_loader_goes_on_exactly(dataset, after):
    whole = [batch.indices.tolist() for batches in [tensors(dataset)] for _ in range(2) for batch in batches]
    model, stop = TensorModel(), Stop(after)
    with tensors(dataset) as batches, pytest.raises((KeyboardInterrupt, SystemExit)):
        trainer(max_epochs=2, callbacks=[stop]).fit(model, batches)
        raise KeyboardInterrupt
    assert model.seen == whole[:after]
    again = TensorModel()
    trainer(max_epochs=2).fit(again, tensors(dataset), ckpt_path="stopped.ckpt")
    assert again.seen == whole[after:]


@pytest.mark.parametrize("replaced", [True, False])
def test_sampler_is_replaced_for_several_processes_and_not_for_one(dataset, replaced):
    """What the trainer does to a loader under DDP, without the processes."""
    from pytorch_lightning.utilities.data import _get_dataloader_init_args_and_kwargs

    ours = loader(dataset, skippable=False, num_workers=1)
    assert isinstance(ours.sampler, RandomSampler)
    sampler = DistributedSampler(dataset, 2, 1, shuffle=True) if replaced else ours.sampler
    arguments, options = _get_dataloader_init_args_and_kwargs(ours, sampler)
    again = type(ours)(*arguments, **options)
    assert again.sampler is sampler and not again.skippable
    assert again.num_workers == 1 and again.batch_size == SIZE
    found = sum((batch.flatten().int().tolist() for batch in again), [])
    assert sorted(found) == sorted(sampler if replaced else range(COUNT))


def test_distributed_sampler_of_the_users_own_is_told_the_epoch(dataset):
    def batches(kind):
        return kind(dataset, batch_size=SIZE, sampler=DistributedSampler(dataset, 2, 0, seed=5))

    seen = trained(batches(anyrec.torch.DataLoader), use_distributed_sampler=False)
    assert seen == trained(batches(torch.utils.data.DataLoader), use_distributed_sampler=False)
    assert len(seen) == STEPS and seen[: STEPS // 2] != seen[STEPS // 2 :]

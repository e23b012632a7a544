"""Trains a small model under a trainer, to the end or to a checkpoint in the middle of an epoch, or from one.

    python training.py TRAINER:LOADER... (whole | stop | resume)...

For every case it prints a line of JSON: the samples and the loss of every step. Each sample has a
label of its own.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import accelerate
import anyrec.torch
import torch
import transformers
from accelerate.utils import set_seed

RECORDS, BATCH, EPOCHS = 40, 4, 3
STEPS = RECORDS // BATCH
STOP = STEPS + 4
"""The step after which one run stops: in the middle of the second epoch."""
CLASSES = RECORDS


class Model(torch.nn.Module):
    """Its dropout shows whether random numbers continue after a checkpoint."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(features, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, CLASSES)
        )

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.layers(pixel_values.flatten(1).float() / 255)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels.long()), "logits": scores}


def features(kind: str) -> int:
    return 3 * 8 * 8 if kind == "ImageLoader" else 2


def decoded(record: Any) -> dict[str, Any]:
    number = int(bytes(record))
    return {"pixel_values": torch.tensor([number, number % 7]), "labels": number}


def loader(kind: str, generator: torch.Generator | None = None) -> Any:
    names = {"data": "pixel_values", "labels": "labels"}
    if kind == "ImageLoader":
        return anyrec.torch.ImageLoader(
            "images.rec", BATCH, 8, train=True, shuffle=True, seed=3, label_dtype="int64", as_dict=names
        )
    if kind == "Loader":
        return anyrec.torch.Loader(
            "labelled.rec",
            BATCH,
            shuffle=True,
            seed=3,
            labels=True,
            label_dtype=torch.int64,
            decode=lambda record: torch.tensor(list(record)),
            as_dict=names,
        )
    dataset = anyrec.torch.Dataset("numbers.ffr", decode=decoded)
    # Without a generator of its own, torch's loader draws from the global one when an epoch is resumed.
    return anyrec.torch.DataLoader(dataset, batch_size=BATCH, shuffle=True, generator=generator)


class Trainer(transformers.Trainer):  # type: ignore[misc]
    kind: str

    def __init__(self, kind: str, seen: list[Any], **options: Any) -> None:
        self.kind, self.seen = kind, seen
        if kind == "Dataset":
            options["train_dataset"] = anyrec.torch.Dataset("numbers.ffr", decode=decoded)
        super().__init__(**options)

    def get_train_dataloader(self) -> Any:
        if self.kind == "Dataset":
            return super().get_train_dataloader()
        made = loader(self.kind)
        return self.accelerator.prepare(made) if self.kind == "DataLoader" else made

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
        found = super().compute_loss(model, inputs, *arguments, **options)
        loss = found[0] if isinstance(found, tuple) else found
        self.seen.append([inputs["labels"].tolist(), loss.item()])
        return found


def hugging_face(kind: str, what: str) -> list[Any]:
    seen: list[Any] = []
    arguments = transformers.TrainingArguments(
        output_dir=f"{kind}-{'whole' if what == 'whole' else 'stopped'}",
        per_device_train_batch_size=BATCH,
        num_train_epochs=EPOCHS,
        learning_rate=0.05,
        save_strategy="steps",
        save_steps=STOP,
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )

    class Stop(transformers.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, arguments: Any, state: Any, control: Any, **_: Any) -> None:
            if what == "stop" and state.global_step == STOP:
                control.should_save = control.should_training_stop = True

    set_seed(1)
    trainer = Trainer(kind, seen, model=Model(features(kind)), args=arguments, callbacks=[Stop()])
    trainer.train(resume_from_checkpoint=what == "resume")
    return seen


def accelerated(kind: str, what: str, skip: bool) -> list[Any]:
    """With ``skip``, the checkpoint does not hold the loader's state: ``skip_first_batches`` skips."""
    set_seed(1)
    seen: list[Any] = []
    # Otherwise torch's random order would depend on the random numbers drawn before the epoch.
    seedable = accelerate.DataLoaderConfiguration(use_seedable_sampler=True)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=seedable)
    model = Model(features(kind))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = loader(kind, torch.Generator() if skip else None)
    if skip:
        batches = accelerator.prepare(batches)
    else:
        accelerator.register_for_checkpointing(batches)
    model, optimizer = accelerator.prepare(model, optimizer)
    done = 0
    if what == "resume":
        accelerator.load_state(f"{kind}-{skip}")
        done = STOP
    for epoch in range(done // STEPS, EPOCHS):
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch)
        this = batches
        if skip and done % STEPS:
            this = accelerate.skip_first_batches(batches, done % STEPS)
        for batch in this:
            loss = model(**batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            seen.append([batch["labels"].tolist(), loss.item()])
            done += 1
            if what == "stop" and done == STOP:
                accelerator.save_state(f"{kind}-{skip}")
                return seen
    return seen


def trained(case: str, what: str) -> list[Any]:
    trainer, kind = case.split(":")
    if trainer == "hugging-face":
        return hugging_face(kind, what)
    return accelerated(kind, what, skip=trainer == "accelerate-skip")


if __name__ == "__main__":
    words = sys.argv[1:]
    for case in [word for word in words if ":" in word]:
        for what in [word for word in words if ":" not in word]:
            print("\n" + json.dumps([case, what, trained(case, what)]))

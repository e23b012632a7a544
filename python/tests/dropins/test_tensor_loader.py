"""`anyrec.torch.Loader`: tensors over the loader's memory, in one process and in several."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import anyrec  # noqa: E402
import anyrec.torch  # noqa: E402

WATCHDOG = 120


def write(name, count=30):
    with anyrec.create(name) as writer:
        for number in range(count):
            label = number if name.endswith(".rec") else None
            writer.write(np.full(number % 5, number, np.uint8), label=label)
    return name


def test_records_of_any_length_are_one_buffer_and_views_of_it():
    loader = anyrec.torch.Loader(write("a.ffr"), 8, shuffle=True)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns when memory cannot be written to
        for batch in loader:
            assert batch.data.dtype == torch.uint8 and len(batch.data) == int(batch.offsets[-1])
            for number, record in zip(batch.indices.tolist(), batch.records(), strict=True):
                assert record.tolist() == [number] * (number % 5)
                assert len(record) == 0 or record.data_ptr() >= batch.data.data_ptr()
                seen.append(number)
    assert sorted(seen) == list(range(30))


def test_idx_files_come_stacked_in_the_machines_byte_order():
    for dtype in [np.uint8, np.int8, np.int16, np.int32, np.float32, np.float64]:
        array = (np.arange(10 * 6) - 20).astype(dtype).reshape(10, 2, 3)
        anyrec.idx.write(f"{np.dtype(dtype).name}-idx3", array)
        loader = anyrec.torch.Loader(f"{np.dtype(dtype).name}-idx3", 4, shuffle=True)
        for batch in loader:
            assert batch.data.numpy().dtype == dtype
            assert np.array_equal(batch.data.numpy(), array[batch.indices.numpy()])
            assert torch.equal(batch.records()[0], batch.data[0])


def test_records_of_a_given_shape_are_stacked_without_a_copy():
    with anyrec.create("a.ffr") as writer:
        for number in range(10):
            writer.write(np.full((2, 3), number, np.float32))
    batch = next(iter(anyrec.torch.Loader("a.ffr", 4, shape=(2, 3), dtype=torch.float32)))
    assert batch.data.shape == (4, 2, 3) and batch.data[3].unique().tolist() == [3.0]
    batch.data.mul_(2)  # the memory is the batch's own
    assert anyrec.open("a.ffr").read([3]).numpy()[0].view(np.float32)[0] == 3.0
    with pytest.raises(anyrec.InvalidArgument, match="4 records of shape .* need 120 bytes"):
        next(iter(anyrec.torch.Loader("a.ffr", 4, shape=(5, 6))))


def test_tensors_keep_their_memory():
    kept = [batch.data for batch in anyrec.torch.Loader(write("a.ffr"), 4, threads=2)]
    for _ in anyrec.torch.Loader("a.ffr", 4):
        pass
    assert torch.cat(kept).tolist() == [number for number in range(30) for _ in range(number % 5)]


def test_labels_and_decoded_samples_are_tensors():
    write("a.rec")
    loader = anyrec.torch.Loader("a.rec", 8, labels=True, shuffle=True, decode=lambda record: len(record))
    for batch in loader:
        assert batch.labels.tolist() == batch.indices.tolist()
        assert batch.data.shape == batch.indices.shape


def test_pinning_without_a_gpu_is_told_and_does_no_harm():
    if torch.cuda.is_available():
        batch = next(iter(anyrec.torch.Loader(write("a.ffr"), 8, pin_memory=True)))
        assert batch.data.is_pinned()
        return
    with pytest.warns(UserWarning, match="sees no GPU"):
        loader = anyrec.torch.Loader(write("a.ffr"), 8, pin_memory=True, device="cpu")
    assert sum(len(batch.indices) for batch in loader) == 30


def test_loaders_pickle_and_resume():
    loader = anyrec.torch.Loader(write("a.ffr"), 4, shuffle=True, seed=1)
    batches = iter(loader)
    next(batches)
    again = pickle.loads(pickle.dumps(loader))
    assert [batch.indices.tolist() for batch in again] == [batch.indices.tolist() for batch in batches]


def test_views_work_in_torchs_own_loader():
    view = anyrec.open(write("a.rec")).filter(labels=range(10, 20))
    dataset = anyrec.torch.Dataset(view, decode=lambda record: len(record))
    assert len(dataset) == 10 and len(pickle.loads(pickle.dumps(anyrec.torch.Dataset(view)))) == 10
    batches = list(torch.utils.data.DataLoader(dataset, batch_size=5))
    assert [len(batch) for batch in batches] == [5, 5]
    with pytest.raises(TypeError, match="takes no options: verify"):
        anyrec.torch.Dataset(view, verify=False)


PROCESS = """
import json, sys
import torch.distributed
import anyrec.torch

rank, world, state = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
store = torch.distributed.FileStore(sys.argv[4], world)
torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
loader = anyrec.torch.Loader("a.ffr", 4, shuffle=True, seed=3)
if state:
    loader.load_state_dict(state)
seen = []
for batch in loader:
    seen += batch.indices[: len(batch.indices) - batch.padding].tolist()
    together = torch.tensor([len(batch.indices)])
    torch.distributed.all_reduce(together)  # hangs unless all ranks have as many steps
    assert together.item() == world * len(batch.indices)
    if not state and loader.step == 2:
        break
print(json.dumps({"rank": loader.rank, "seen": seen, "state": loader.state_dict()}))
"""


def run_ranks(world, state, store):
    given = [str(world), json.dumps(state), store]
    commands = [[sys.executable, "-c", PROCESS, str(rank), *given] for rank in range(world)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return [json.loads(process.communicate(timeout=WATCHDOG)[0]) for process in processes]


def test_two_processes_train_together_and_three_go_on(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    write("a.ffr", 41)
    first = run_ranks(2, None, str(tmp_path / "first"))
    assert [told["rank"] for told in first] == [0, 1]
    assert first[0]["state"] == first[1]["state"]
    then = run_ranks(3, first[0]["state"], str(tmp_path / "then"))
    assert sorted(number for told in first + then for number in told["seen"]) == list(range(41))


def labelled(labels):
    with anyrec.create("labelled.rec", overwrite=True) as writer:
        for i, label in enumerate(labels):
            writer.write(f"{i}", label=label)
    return "labelled.rec"


def test_labels_have_the_requested_type_or_the_wrong_one_is_named():
    [batch] = anyrec.torch.Loader(labelled([3.0, 1.0]), 2, labels=True, label_dtype=torch.int64)
    assert batch.labels.dtype == torch.int64 and batch.labels.tolist() == [3, 1]
    loader = anyrec.torch.Loader(labelled([3.0, 1.5]), 2, labels=True, label_dtype=torch.int64)
    with pytest.raises(anyrec.InvalidArgument, match=r"the label of record 1 is 1\.5, not one of torch\.int64"):
        next(iter(loader))
    half = anyrec.torch.Loader("labelled.rec", 2, labels=True, label_dtype=torch.float16)
    assert next(iter(half)).labels.tolist() == [3.0, 1.5]


def test_batches_are_dictionaries_of_tensors_on_request():
    path = labelled([3.0, 1.0])
    [batch] = anyrec.torch.Loader(path, 2, labels=True, as_dict=True)
    assert list(batch) == ["data", "offsets", "indices", "labels", "padding"]
    names = {"indices": "ids", "labels": "labels"}
    [batch] = anyrec.torch.Loader(path, 2, labels=True, as_dict=names)
    assert {name: value.tolist() for name, value in batch.items()} == {"ids": [0, 1], "labels": [3.0, 1.0]}
    [batch] = anyrec.torch.Loader(path, 2, as_dict=True)
    assert "labels" not in batch


def test_element_types_are_given_by_name_too():
    anyrec.idx.write("train-images-idx3-ubyte", np.zeros((4, 2, 2), np.uint8))
    anyrec.idx.write("train-labels-idx1-ubyte", np.arange(4, dtype=np.uint8))
    for given in ["int64", torch.int64]:
        (batch,) = anyrec.torch.Loader("train-images-idx3-ubyte", 4, labels=True, label_dtype=given)
        assert batch.labels.tolist() == [0, 1, 2, 3] and batch.labels.dtype == torch.int64
    with pytest.raises(anyrec.InvalidArgument, match="no element type 'int65'"):
        anyrec.torch.Loader("train-images-idx3-ubyte", 4, label_dtype="int65")


def test_a_dataset_of_arrays_gives_arrays():
    images = np.arange(24, dtype=np.int16).reshape(4, 2, 3)
    anyrec.idx.write("train-images-idx3-short", images)
    dataset = anyrec.torch.Dataset("train-images-idx3-short")
    assert dataset[2].tolist() == images[2].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns when memory cannot be written to
        (batch,) = torch.utils.data.DataLoader(dataset, batch_size=4)
    assert batch.tolist() == images.tolist()


def test_images_of_a_known_size_need_no_step_that_gives_it():
    anyrec.idx.write("train-images-idx3-ubyte", np.full((4, 6, 5), 255, np.uint8))
    steps = [anyrec.image.Normalize(0.5, 0.5, scale=1 / 255)]
    (batch,) = anyrec.torch.ImageLoader("train-images-idx3-ubyte", 4, channels=1, steps=steps)
    assert batch.data.shape == (4, 1, 6, 5) and (batch.data == 1).all()

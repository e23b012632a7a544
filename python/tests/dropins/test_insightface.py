"""Face data sets in every layout there is."""

from __future__ import annotations

import os
import pickle
import threading
from pathlib import Path

import anyrec
import numpy as np
import pytest
from anyrec.insightface import FaceDataset
from anyrec.mxnet import IRHeader, MXIndexedRecordIO, pack, pack_img

PERSONS = [0, 0, 0, 1, 1, 2]
EXTENT = len(PERSONS) + 1


def face(number):
    """Red grows with the number, blue is always full: the channels cannot be taken for each other."""
    image = np.zeros((12, 10, 3), np.uint8)
    image[:, :, 2] = number * 20
    image[:, :, 0] = 255
    return image


def write_images(record, labels, first_key=1):
    for key, label in enumerate(labels, start=first_key):
        record.write_idx(key, pack_img(IRHeader(0, label, key, 0), face(key), 3, ".png"))


def write_described(root, labels=PERSONS, name="train"):
    """Images, then identities, and the header record last, as InsightFace writes them."""
    root.mkdir()
    with MXIndexedRecordIO(root / f"{name}.idx", root / f"{name}.rec", "w") as record:
        write_images(record, labels)
        for number, (first, last) in enumerate([(1, 4), (4, 6), (6, 7)]):
            key = EXTENT + number
            record.write_idx(key, pack(IRHeader(0, [first, last], key, 0), b""))
        record.write_idx(0, pack(IRHeader(0, [EXTENT, EXTENT + 3], 0, 0), b""))
    (root / "property").write_text("3,12,10\n")


def labels(faces):
    return [label for _, label in faces]


@pytest.fixture
def root(tmp_path):
    write_described(tmp_path / "faces")
    return tmp_path / "faces"


def test_header_record_says_which_keys_are_images(root):
    faces = FaceDataset(root)
    assert len(faces) == 6 and labels(faces) == PERSONS
    assert faces.classes == 3 and faces.image_size == (12, 10)
    assert faces.identities == [range(3), range(3, 5), range(5, 6)]


def test_images_are_rgb(root):
    image, _ = FaceDataset(root)[4]
    assert image.shape == (12, 10, 3) and image[0, 0].tolist() == [100, 0, 255]


def test_samples_have_type_int_labels_and_negative_numbers(root):
    faces = FaceDataset(root)
    assert type(faces[0][1]) is int and faces[-1][1] == 2 and faces.label(3) == 1
    with pytest.raises(IndexError):
        faces[6]
    with pytest.raises(IndexError):
        faces[-7]


def test_image_records_may_have_several_labels(tmp_path):
    write_described(tmp_path / "faces", [[person, 1.0] for person in PERSONS])
    assert labels(FaceDataset(tmp_path / "faces")) == PERSONS


def test_without_a_header_record_every_key_is_an_image(tmp_path):
    root = tmp_path / "faces"
    root.mkdir()
    with MXIndexedRecordIO(root / "train.idx", root / "train.rec", "w") as record:
        write_images(record, PERSONS, first_key=0)
    faces = FaceDataset(root)
    assert len(faces) == 6 and labels(faces) == PERSONS
    assert faces.identities == [] and faces.classes is None and faces.image_size is None


def test_record_0_that_is_an_image_with_several_labels_is_no_header(tmp_path):
    root = tmp_path / "faces"
    root.mkdir()
    with MXIndexedRecordIO(root / "train.idx", root / "train.rec", "w") as record:
        write_images(record, [[person, 1] for person in PERSONS], first_key=0)
    assert labels(FaceDataset(root)) == PERSONS


def test_missing_index_file_is_made_anew(root):
    os.unlink(root / "train.idx")
    faces = FaceDataset(root)
    assert labels(faces) == PERSONS and len(faces.identities) == 3
    assert not (root / "train.idx").exists()


def test_file_of_another_name_is_found_if_it_is_the_only_one(tmp_path):
    write_described(tmp_path / "faces", name="ms1m")
    assert len(FaceDataset(tmp_path / "faces")) == 6
    assert len(FaceDataset(tmp_path / "faces" / "ms1m.rec")) == 6


def test_folder_without_records_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="train.rec"):
        FaceDataset(tmp_path)


def test_index_file_that_lacks_a_promised_image_is_an_error(root):
    lines = (root / "train.idx").read_text().splitlines(keepends=True)
    (root / "train.idx").write_text("".join(line for line in lines if not line.startswith("4\t")))
    with pytest.raises(anyrec.CorruptRecord, match="no key 4"):
        FaceDataset(root)


def test_transform_and_undecoded_images(root):
    assert FaceDataset(root, transform=lambda image: image.sum())[0][0] == face(1).sum()
    assert FaceDataset(root, decode=False)[0][0].startswith(b"\x89PNG")


def test_dataset_is_pickled_and_read_by_a_forked_child(root):
    faces = FaceDataset(root)
    assert faces[0][1] == 0
    assert labels(pickle.loads(pickle.dumps(faces))) == PERSONS
    child = os.fork()
    if child == 0:
        os._exit(0 if labels(faces) == PERSONS else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_get_their_own_samples(root):
    faces = FaceDataset(root)
    wrong = []

    def work(seed):
        for index in np.random.default_rng(seed).integers(0, 6, 200):
            image, person = faces[index]
            if person != PERSONS[index] or image[0, 0, 0] != (index + 1) * 20:
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_loader_takes_it(root, workers):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    faces = FaceDataset(Path(root))
    assert isinstance(faces, torch.utils.data.Dataset)
    images, persons = next(iter(torch.utils.data.DataLoader(faces, batch_size=6, num_workers=workers)))
    assert images.shape == (6, 12, 10, 3) and persons.tolist() == PERSONS

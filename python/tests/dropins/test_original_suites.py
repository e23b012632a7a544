"""What the originals' own test suites ask for, asked in scripts that run on `anyrec.compat`.

mxnet's `test_recordio.py` writes and reads records of one character, reads shuffled keys, and packs
label arrays of every length beside contents of every length. ffrecord's suite reads single samples
and batches in random order from one file and from several, directories and path objects, compares
its loader with torch's (from a step on, shuffled, with workers), and tries its `ConcatDataset`,
`Subset`, registry, pickling, packed folders, `dump` and alignment check.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def script(tmp_path):
    """Runs a script as `python -m anyrec.compat`, which must end within two minutes."""

    def run(code):
        (tmp_path / "suite.py").write_text(textwrap.dedent(code))
        command = [sys.executable, "-m", "anyrec.compat", "suite.py"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


# mxnet


def test_characters_are_written_by_a_dropped_writer_and_read(script):
    script("""
        import tempfile
        import mxnet as mx
        from mxnet.test_utils import *

        @with_seed()
        def check():
            name = tempfile.mktemp()
            writer = mx.recordio.MXRecordIO(name, "w")
            for code in range(255):
                writer.write(chr(code).encode())
            del writer
            reader = mx.recordio.MXRecordIO(name, "r")
            assert [reader.read() for _ in range(255)] == [chr(code).encode() for code in range(255)]

        check()
    """)


def test_shuffled_keys_find_their_records(script):
    script("""
        import random, tempfile
        import mxnet as mx

        index, name = tempfile.mktemp(), tempfile.mktemp()
        writer = mx.recordio.MXIndexedRecordIO(index, name, "w")
        for key in range(255):
            writer.write_idx(key, chr(key).encode())
        del writer
        reader = mx.recordio.MXIndexedRecordIO(index, name, "r")
        keys = reader.keys
        assert sorted(keys) == list(range(255))
        random.shuffle(keys)
        assert all(reader.read_idx(key) == chr(key).encode() for key in keys)
    """)


def test_label_arrays_of_every_length_come_back_beside_their_content(script):
    script("""
        import mxnet as mx, numpy as np

        random = np.random.default_rng(0)
        for labels in range(1, 255):
            for size in range(0, 255, 13):
                content = random.integers(65, 91, size, dtype=np.uint8).tobytes()
                label = random.random(labels, dtype=np.float32)
                header, found = mx.recordio.unpack(mx.recordio.pack((0, label, 0, 0), content))
                assert (header.label == label).all() and found == content
    """)


def test_seeded_functions_draw_the_same_numbers_again(script):
    script("""
        import random
        import numpy as np
        from mxnet.test_utils import with_seed

        @with_seed(7)
        def draw(count):
            return [random.random() for _ in range(count)], np.random.rand(count).tolist()

        assert draw(3) == draw(count=3) and draw.__name__ == "draw"
    """)


# ffrecord

SAMPLES = """
    import os, pickle, random, tempfile
    from pathlib import Path
    import numpy as np
    import ffrecord
    from ffrecord import FileReader, FileWriter

    def sample(number):
        return bytearray(x * x % 256 for x in range(number + 5))

    def written(count, files, name=None):
        names, number = [], 0
        for file in range(files):
            names.append(name(file) if name else tempfile.mkstemp(suffix=".ffr")[1])
            writer = FileWriter(names[-1], count)
            for _ in range(count):
                writer.write_one(sample(number))
                number += 1
            writer.close()
        return names

    def shuffled(count):
        numbers = list(range(count))
        random.shuffle(numbers)
        return numbers

    def check_batches(reader, numbers, size=10):
        for at in range(0, len(numbers), size):
            batch = numbers[at : at + size]
            for number, found in zip(batch, reader.read(batch)):
                assert found.tobytes() == sample(number)
"""


@pytest.mark.parametrize("files", [1, 10])
def test_samples_are_read_in_random_order_one_by_one_and_in_batches(script, files):
    script(
        textwrap.dedent(SAMPLES)
        + textwrap.dedent(f"""
        names = written(100, {files})
        reader = FileReader(names, check_data=True)
        assert reader.n == 100 * {files}
        for number in shuffled(reader.n):
            assert reader.read_one(number).tobytes() == sample(number)
        check_batches(reader, shuffled(reader.n))
        reader.validate()
        reader.close()
        for name in names:
            Path(name).unlink()
        """)
    )


def test_directory_path_object_and_with_are_taken(script):
    script(
        textwrap.dedent(SAMPLES)
        + textwrap.dedent("""
        os.makedirs("files/", exist_ok=True)
        written(100, 5, lambda file: f"files/{file:05d}.ffr")
        with FileReader("files/", check_data=True) as reader:
            check_batches(reader, shuffled(500))
        path = Path(tempfile.mkstemp(suffix=".ffr")[1])
        with FileWriter(path, 10) as writer:
            for _ in range(10):
                writer.write_one(b"12345")
        with FileReader(path) as reader:
            assert [bytes(one) for one in reader.read(list(range(10)))] == [b"12345"] * 10
        """)
    )


def test_pickled_reader_and_alignment_check(script):
    script(
        textwrap.dedent(SAMPLES)
        + textwrap.dedent("""
        [name] = written(2, 1)
        reader = FileReader(name, True)
        copy = pickle.loads(pickle.dumps(reader))
        for one, other in zip(reader.read([0, 1]), copy.read([0, 1])):
            np.testing.assert_array_equal(one, other)
        reader.close()
        copy.close()
        assert ffrecord.checkFsAlign(os.open(name, os.O_RDONLY)) is False
        """)
    )


@pytest.mark.parametrize("count, files", [(200, 1), (200, 8), (200, 64), (10, 16)])
def test_dump_makes_at_most_so_many_files(script, count, files):
    script(f"""
        import pickle
        from pathlib import Path
        from ffrecord import FileReader
        from ffrecord.utils import dump

        numbers = [number * 2 for number in range({count})]
        target = "one.ffr" if {files} == 1 else "folder.ffr"
        dump([pickle.dumps(number) for number in numbers], target, nfiles={files})
        assert {files} == 1 or len(list(Path(target).glob("*.ffr"))) <= {files}
        reader = FileReader(target, True)
        assert reader.n == {count}
        assert [pickle.loads(one) for one in reader.read(list(range(reader.n)))] == numbers
    """)


def test_packed_folder_is_listed_and_read(script):
    printed = script("""
        from pathlib import Path
        import numpy as np
        from ffrecord import PackedFolder, pack_folder

        def content(number):
            return bytearray((number + at) % 256 for at in range(1000 + number))

        Path("folder").mkdir()
        for number in range(20):
            Path(f"folder/{number:03d}").write_bytes(content(number))
        pack_folder(Path("folder"), Path("packed.ffr"), verbose=True)
        folder = PackedFolder(Path("packed.ffr"))
        assert folder.num_files() == 20
        assert folder.is_file("000") and not folder.is_dir("000") and not folder.is_file("100")
        assert set(folder.list()) == {f"{number:03d}" for number in range(20)}
        for number in range(20):
            data = folder.read_one(f"{number:03d}")
            np.testing.assert_array_equal(data, np.frombuffer(content(number), dtype=np.uint8))
        assert folder.reader.n == 21 and folder.structure["007"] == 7
    """)
    assert printed.count("folder/") == 20


def test_registry_finds_the_readers_of_its_attributes(script):
    pytest.importorskip("torch")
    script("""
        from ffrecord import FileReader, FileWriter
        from ffrecord.torch import Dataset, ReaderRegistry, ReaderResitry

        with FileWriter("a.ffr", 1) as writer:
            writer.write_one(b"12345")

        class Inner(ReaderResitry):
            def __init__(self):
                self.one, self.two = FileReader("a.ffr"), FileReader("a.ffr")

        class Outer(Dataset):
            def __init__(self):
                self.three, self.four, self.inner = FileReader("a.ffr"), FileReader("a.ffr"), Inner()

        assert len(Outer().ffreaders()) == 4
    """)


LOADERS = """
    import pickle
    import numpy as np
    import torch
    from torch.utils.data import DataLoader
    from ffrecord import FileWriter
    from ffrecord.torch import ConcatDataset, Subset
    from ffrecord.torch import DataLoader as FFLoader
    from ffrecord.torch import Dataset as FFDataset

    class Plain(torch.utils.data.Dataset):
        def __init__(self, count):
            self.count = count
        def __len__(self):
            return self.count
        def __getitem__(self, index):
            return index * 2, index * 3

    class Pickled(FFDataset):
        def process(self, indexes, data):
            return [pickle.loads(one) for one in data]

    class Raw(FFDataset):
        def process(self, indexes, data):
            return data

    def dumped(name, samples):
        writer = FileWriter(name, len(samples))
        for one in samples:
            writer.write_one(bytearray(one))
        writer.close()
        return name

    def seeded():
        return torch.Generator().manual_seed(12345)

    def pickles(plain):
        return [pickle.dumps(plain[index]) for index in range(len(plain))]
"""


@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("size", [1, 4])
def test_batches_from_a_step_on_are_those_of_torchs_loader(script, workers, shuffle, size):
    pytest.importorskip("torch")
    script(
        textwrap.dedent(LOADERS)
        + textwrap.dedent(f"""
        options = dict(batch_size={size}, shuffle={shuffle}, num_workers={workers})
        plain = Plain({size} * 25)
        expected = DataLoader(plain, generator=seeded(), **options)
        name = dumped("a.ffr", pickles(plain))
        loader = FFLoader(Pickled(name), generator=seeded(), **options)
        loader.set_step(5)
        assert len(expected) == 25 and len(loader) == 20
        rest = list(expected)[5:]
        found = list(loader)
        assert len(found) == len(rest)
        for one, other in zip(rest, found):
            assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])
        loader.set_step(0)
        assert len(loader) == 25
        """)
    )


def test_concatenation_and_subset_give_the_samples_of_their_parts(script):
    pytest.importorskip("torch")
    script(
        textwrap.dedent(LOADERS)
        + textwrap.dedent("""
        one = Raw(dumped("one.ffr", [[i] for i in range(100)]), True)
        two = Raw(dumped("two.ffr", [[i * 2 % 256] for i in range(100)]), True)
        both = ConcatDataset([one, two])
        assert len(both) == 200
        for at, found in enumerate(both[list(range(200))]):
            assert found == (one[[at]] if at < 100 else two[[at - 100]])
        indices = np.random.choice(100, 50)
        some = Subset(one, indices)
        assert len(some) == 50
        for at in range(50):
            assert some[[at]] == one[[indices[at]]]
        """)
    )


def test_loader_of_a_dataset_with_its_own_lists_works_spawned_and_unskippable(script):
    pytest.importorskip("torch")
    script(
        textwrap.dedent(LOADERS)
        + textwrap.dedent("""
        class Own(FFDataset):
            def __init__(self):
                self.data = [(np.full(8, i, np.float32), np.full(1, i, np.float32)) for i in range(50)]
            def __len__(self):
                return len(self.data)
            def __getitem__(self, indices):
                return [tuple(map(torch.from_numpy, self.data[index])) for index in indices]

        if __name__ == "__main__":
            torch.multiprocessing.set_start_method("spawn")
            loader = FFLoader(Own(), batch_size=5, num_workers=2, skippable=False)
            batches = list(loader)
            assert [batch[0].shape for batch in batches] == [(5, 8)] * 10
            assert torch.cat([batch[1] for batch in batches]).flatten().tolist() == list(range(50))
        """)
    )

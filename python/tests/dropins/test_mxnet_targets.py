"""What the MXNet writers do to files that are there already, and to what is not a file."""

import os
import stat
import threading

import pytest

from anyrec.mxnet import MXIndexedRecordIO, MXRecordIO


def write_pair(folder, word):
    index, data = str(folder / "x.idx"), str(folder / "x.rec")
    with MXIndexedRecordIO(index, data, "w") as record:
        for key in range(3):
            record.write_idx(key, f"{word} {key}")
    return index, data


def test_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with MXRecordIO(pipe, "w") as record:
        record.write(b"abcd")
    reader.join()
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert read == [b"\x0a\x23\xd7\xce\x04\x00\x00\x00abcd"]


def test_folder_is_refused_at_once(tmp_path):
    with pytest.raises(Exception, match="is a folder"):
        MXRecordIO(tmp_path, "w")


def test_data_without_keys_takes_the_old_index_file_away(tmp_path):
    index, data = write_pair(tmp_path, "old")
    with MXRecordIO(data, "w") as record:
        record.write("new")
    assert not os.path.exists(index)


def test_both_files_appear_together_and_leave_nothing_else(tmp_path):
    index, data = write_pair(tmp_path, "old")
    os.chmod(data, 0o600)
    writer = MXIndexedRecordIO(index, data, "w")
    writer.write_idx(7, "new 7")
    reader = MXIndexedRecordIO(index, data, "r")
    assert reader.read_idx(2) == b"old 2"
    writer.close()
    assert sorted(os.listdir(tmp_path)) == ["x.idx", "x.rec"]
    assert stat.S_IMODE(os.stat(data).st_mode) == 0o600
    assert MXIndexedRecordIO(index, data, "r").read_idx(7) == b"new 7"


def test_writer_given_up_leaves_the_old_pair(tmp_path):
    index, data = write_pair(tmp_path, "old")
    with pytest.raises(KeyboardInterrupt), MXIndexedRecordIO(index, data, "w") as writer:
        writer.write_idx(0, "new 0")
        raise KeyboardInterrupt
    assert MXIndexedRecordIO(index, data, "r").read_idx(0) == b"old 0"

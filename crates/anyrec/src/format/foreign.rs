//! Files that people mistake for record files, so that the refusal can say what they have.

use super::formats;
use crate::base::Hint;

/// Recognises a file of another kind by its first bytes: what it is, and what to do.
pub(super) fn recognise(head: &[u8]) -> Option<(&'static str, Hint)> {
    let (what, hint) = kind(head)?;
    let hint = match hint {
        CONVERT => {
            let names: Vec<_> = formats().map(|format| format.name()).collect();
            Hint::from(format!("anyrec reads these formats: {}", names.join(", ")))
        }
        PACK => Hint::PackImages,
        advice => Hint::from(advice),
    };
    Some((what, hint))
}

const CONVERT: &str = "convert";
const PACK: &str = "pack";
const UNPACK: &str = "unpack it first and give the files inside";
const DOWNLOAD: &str = "the download failed: fetch the file again";

fn kind(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let starts = |magic: &[u8]| head.starts_with(magic);
    let text_start = head.trim_ascii_start();
    let starts_text =
        |word: &[u8]| text_start.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    Some(match head {
        _ if starts(b"version https://git-lfs") => {
            ("a Git LFS pointer, not the file itself", "run `git lfs pull` to fetch the data")
        }
        _ if starts_text(b"<!doctype html") || starts_text(b"<html") => ("an HTML page", DOWNLOAD),
        _ if starts_text(b"<?xml") => ("an XML document (often a storage service's error message)", DOWNLOAD),
        _ if head.get(257..262) == Some(b"ustar") => ("a tar archive", UNPACK),
        _ if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") => ("a zip archive (or an .npz)", UNPACK),
        _ if starts(b"7z\xbc\xaf\x27\x1c") => ("a 7z archive", UNPACK),
        _ if starts(b"\x1f\x8b") => {
            ("gzip data that holds none of our formats", "gunzip it and see what is inside")
        }
        _ if starts(b"\x28\xb5\x2f\xfd") => ("zstd data", "unzstd it and see what is inside"),
        _ if starts(b"PAR1") => ("a Parquet file", CONVERT),
        _ if starts(b"ARROW1") => ("an Arrow file", CONVERT),
        _ if starts(b"\x89HDF\r\n\x1a\n") => ("an HDF5 file", CONVERT),
        _ if starts(b"\x93NUMPY") => ("a NumPy array (.npy)", CONVERT),
        _ if starts(b"\x89PNG\r\n\x1a\n") || starts(b"\xff\xd8\xff") => ("an image", PACK),
        _ if is_tf_record(head) => ("a TFRecord file", CONVERT),
        _ if starts(b"\x80\x02") || starts(b"\x80\x03") || starts(b"\x80\x04") || starts(b"\x80\x05") => {
            ("a Python pickle, which anyrec never loads", CONVERT)
        }
        _ if is_key_offset_line(head) => ("an MXNet index file (.idx)", "give the .rec file beside it"),
        _ => return None,
    })
}

/// A TFRecord begins with a length and that length's masked CRC-32C; the length alone, small and
/// followed by a sane second record or the end, is telling enough for a message.
fn is_tf_record(head: &[u8]) -> bool {
    let Some(length) = head.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) else { return false };
    let Some(stored) = head.get(8..12).and_then(|bytes| bytes.first_chunk::<4>()) else { return false };
    let crc = crc32c::crc32c(&length.to_le_bytes());
    crc.rotate_right(15).wrapping_add(0xa282_ead8) == u32::from_le_bytes(*stored)
}

/// Whether the first line is `number TAB number`.
fn is_key_offset_line(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let mut columns = line.split(|&byte| byte == b'\t');
    let number = |column: Option<&[u8]>| {
        column.is_some_and(|column| !column.is_empty() && column.iter().all(u8::is_ascii_digit))
    };
    number(columns.next()) && number(columns.next()) && columns.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_strangers_are_named() {
        let mut tar = vec![0u8; 512];
        tar[257..262].copy_from_slice(b"ustar");
        // The length 3 and its masked CRC-32C, as TensorFlow writes them.
        let mut tf_record = 3u64.to_le_bytes().to_vec();
        tf_record.extend(
            crc32c::crc32c(&3u64.to_le_bytes()).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes(),
        );
        for (head, word) in [
            (&b"version https://git-lfs.github.com/spec/v1\n"[..], "LFS"),
            (b"\n<!DOCTYPE html><html>", "HTML"),
            (b"<?xml version=\"1.0\"?><Error>", "XML"),
            (&tar, "tar"),
            (b"PK\x03\x04", "zip"),
            (b"PAR1", "Parquet"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (&tf_record, "TFRecord"),
            (b"0\t0\n1\t128\n", "index file"),
        ] {
            assert!(recognise(head).unwrap().0.contains(word), "{word}");
        }
        assert_eq!(recognise(b"some text"), None);
    }

    #[test]
    fn crc32c_of_the_check_string_is_the_published_one() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }
}

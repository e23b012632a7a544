//! The list file (`.lst`) that `im2rec` packs images by.
//!
//! ```text
//! line := index TAB (label TAB)+ path LF
//! ```
//!
//! Written as `im2rec --list` writes it: the index as a whole number, labels with six decimals.
//! The path is data: it is neither opened nor made safe here.

use super::index_file::{parse_int, shortened, strip};
use crate::base::{Error, Result};
use bstr::{BString, ByteSlice};

/// A line of a list file.
#[derive(Debug, Clone, PartialEq)]
pub struct ListEntry {
    /// The record's key, and the id in its header.
    pub index: i128,
    /// Its labels, at least one.
    pub labels: Vec<f64>,
    /// Path of the image below the root folder, as the file has it.
    pub path: BString,
}

/// Reads the text of a list file called `name` in messages. Blank lines are passed over.
///
/// ```
/// use anyrec::format::mxnet::{parse_list, write_list};
///
/// let text = b"5\t1.000000\t0.125000\tdog/small.jpg\n";
/// let entries = parse_list("x.lst", text)?;
/// assert_eq!((entries[0].index, &entries[0].labels[..]), (5, &[1.0, 0.125][..]));
/// assert_eq!(write_list(&entries)?, text);
/// # Ok::<(), anyrec::Error>(())
/// ```
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt) with the number of the first line that cannot be read.
pub fn parse_list(name: &str, text: &[u8]) -> Result<Vec<ListEntry>> {
    list_lines(name, text).collect()
}

/// The lines of a list file one by one, for callers that go on after a line that cannot be read.
/// Blank lines are passed over.
///
/// ```
/// use anyrec::format::mxnet::list_lines;
///
/// let lines: Vec<_> = list_lines("x.lst", b"cat.jpg\n7\t0.0\tdog.jpg\n").collect();
/// assert!(lines[0].is_err());
/// assert_eq!(lines[1].as_ref().unwrap().index, 7);
/// ```
pub fn list_lines<'a>(name: &'a str, text: &'a [u8]) -> impl Iterator<Item = Result<ListEntry>> + 'a {
    (1u64..).zip(text.lines()).filter_map(move |(number, line)| {
        let line = strip(line);
        let place =
            |error: Error| Error::corrupt(format!("line {number}: {}", error.message())).in_file(name);
        (!line.is_empty()).then(|| parse_line(line).map_err(place))
    })
}

fn parse_line(line: &[u8]) -> Result<ListEntry> {
    let columns: Vec<&[u8]> = line.split(|&byte| byte == b'\t').map(strip).collect();
    let [index, labels @ .., path] = columns.as_slice() else {
        return Err(too_short(columns.len()));
    };
    if labels.is_empty() {
        return Err(too_short(columns.len()));
    }
    let label = |text: &&[u8]| {
        let number = text.to_str().ok().and_then(|text| text.parse::<f64>().ok());
        number.ok_or_else(|| Error::corrupt(format!("label {:?} is not a number", shortened(text))))
    };
    Ok(ListEntry {
        index: parse_int(index)
            .ok_or_else(|| Error::corrupt(format!("index {:?} is not a whole number", shortened(index))))?,
        labels: labels.iter().map(label).collect::<Result<_>>()?,
        path: BString::from(*path),
    })
}

fn too_short(columns: usize) -> Error {
    Error::corrupt("too few columns").expected_found("index, label and path, with tabs between", columns)
}

/// The text of a list file, byte for byte as `im2rec` writes it.
///
/// # Errors
/// [`Invalid`](crate::ErrorKind::Invalid) for a path with a tab or a line end in it, or an entry
/// without labels.
pub fn write_list(entries: &[ListEntry]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in entries {
        if entry.labels.is_empty() || entry.path.find_byteset(b"\t\n\r").is_some() {
            return Err(Error::invalid(format!(
                "the entry of {:?} has no label, or a path that a list file cannot hold",
                shortened(&entry.path)
            )));
        }
        text.extend_from_slice(format!("{}\t", entry.index).as_bytes());
        for label in &entry.labels {
            // C writes "nan" where Rust writes "NaN"; all else is alike.
            let label = if label.is_nan() { "nan".to_owned() } else { format!("{label:.6}") };
            text.extend_from_slice(label.as_bytes());
            text.push(b'\t');
        }
        text.extend_from_slice(&entry.path);
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_read_are_named() {
        for (text, message) in [
            ("1\tx.jpg\n", "l: line 1: too few columns"),
            ("1\t0\ta.jpg\n\nx\t0\tb.jpg", "l: line 3: index \"x\" is not a whole number"),
            ("1\tcat\ta.jpg\n", "l: line 1: label \"cat\" is not a number"),
        ] {
            assert_eq!(parse_list("l", text.as_bytes()).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        let labels = vec![f64::NAN, f64::NEG_INFINITY, -0.0, 2.5e-7, 1e20];
        let text = write_list(&[ListEntry { index: -1, labels, path: "a b.jpg".into() }]).unwrap();
        assert_eq!(
            text.as_bstr(),
            "-1\tnan\t-inf\t-0.000000\t0.000000\t100000000000000000000.000000\ta b.jpg\n"
        );
    }
}

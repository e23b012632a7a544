//! The sidecar for files without an index of their own: the positions of all records.
//!
//! Finding record N of a GRAIL file, or of a `.rec` without its `.idx`, takes a scan. A table
//! stores the result of the scan beside the data file as `NAME.anyrec-table`:
//!
//! | bytes | field |
//! |---|---|
//! | 8 | magic `anyrecT1` |
//! | 4 | CRC-32 (IEEE, little-endian) of everything that follows |
//! | 1 + n | format id, length first |
//! | 8 | length of the data file |
//! | 12 | its modification time: seconds (i64), nanoseconds (u32) |
//! | 32 | SHA-256 of the data file |
//! | 8 | number of runs |
//! | | runs: uvarint distance of the frame from the one before (from 0), uvarint records in it |
//!
//! All integers are little-endian. A table is bound to one content: the length must match, and
//! unless the modification time matches too, the digest is computed again. A table that does not
//! match is refused as stale and never partly used.

use crate::base::checksum::crc32;
use crate::base::{Error, ErrorKind, Hint, PositionList, Result, shown};
use crate::format::Format;
use crate::io::{AtomicFile, Durability, Source, Window, open_file};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"anyrecT1";
/// Appended to the data file's full name.
const SUFFIX: &str = ".anyrec-table";

/// The positions of all records of a file, bound to that file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    format: String,
    length: u64,
    modified: (i64, u32),
    digest: [u8; 32],
    positions: PositionList,
}

impl Table {
    /// The path of a data file's table.
    pub fn path_for(data: &Path) -> PathBuf {
        let mut name = data.as_os_str().to_owned();
        name.push(SUFFIX);
        name.into()
    }

    /// Creates the table of a data file with records at these positions. Nothing is written.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn of(
        source: &Arc<dyn Source>,
        data: &Path,
        format: &'static dyn Format,
        positions: PositionList,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Table> {
        Ok(Table {
            format: format.id().to_owned(),
            length: source.len(),
            modified: modified(data)?,
            digest: digest(source, progress)?,
            positions,
        })
    }

    /// Writes the table beside its data file, replacing an older one.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn save(&self, data: &Path) -> Result<PathBuf> {
        let path = Self::path_for(data);
        let mut file = AtomicFile::create(&path, true, Durability::Machine)?;
        file.append(&self.encode())?;
        file.commit()?;
        Ok(path)
    }

    /// Reads the table beside a data file and checks that it belongs to it.
    ///
    /// # Errors
    /// [`Stale`](ErrorKind::Stale) if it was made for other content,
    /// [`Corrupt`](ErrorKind::Corrupt) if it is damaged itself, or the operating system's error.
    pub fn load(data: &Path) -> Result<Table> {
        let source = open_file(data, crate::io::Access::Auto)?;
        let path = Self::path_for(data);
        let bytes = std::fs::read(&path).map_err(|error| Error::io("cannot read", error).in_file(&path))?;
        let table = Self::decode(&bytes)
            .map_err(|error| error.in_file(&path).with_hint(Hint::index(source.name())))?;
        table.check_belongs(&source, data)?;
        Ok(table)
    }

    /// The table beside a source's file, if there is one, for a reader to use.
    pub(crate) fn find(source: &Arc<dyn Source>, format: &'static dyn Format) -> Result<Option<Table>> {
        let Some(data) = source.path() else { return Ok(None) };
        if !Self::path_for(data).exists() {
            return Ok(None);
        }
        let table = Self::load(data)?;
        source.check_still_named()?;
        if table.format != format.id() {
            return Err(
                stale(data, "the table is for another format").expected_found(format.id(), &table.format)
            );
        }
        Ok(Some(table))
    }

    /// The id of the data file's format.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// The positions.
    pub fn positions(&self) -> &PositionList {
        &self.positions
    }

    /// Returns the positions.
    pub fn into_positions(self) -> PositionList {
        self.positions
    }

    fn check_belongs(&self, source: &Arc<dyn Source>, data: &Path) -> Result<()> {
        if self.length != source.len() {
            return Err(stale(data, "the table is for a file of another length")
                .expected_found(format!("{} bytes", self.length), format!("{} bytes", source.len())));
        }
        if self.modified != modified(data)? && self.digest != digest(source, &mut |_| {})? {
            return Err(stale(data, "the data file has changed since the table was made")
                .expected_found(hex(&self.digest), "another SHA-256"));
        }
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        // Format ids are short words defined by this crate.
        body.push(u8::try_from(self.format.len()).unwrap_or(u8::MAX));
        body.extend_from_slice(self.format.as_bytes());
        body.extend_from_slice(&self.length.to_le_bytes());
        body.extend_from_slice(&self.modified.0.to_le_bytes());
        body.extend_from_slice(&self.modified.1.to_le_bytes());
        body.extend_from_slice(&self.digest);
        body.extend_from_slice(&(self.positions.frames().count() as u64).to_le_bytes());
        let mut last = 0;
        for (frame, items) in self.positions.frames() {
            push_uvarint(&mut body, frame - last);
            push_uvarint(&mut body, items);
            last = frame;
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&crc32(&body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Table> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| Error::corrupt("not a table: wrong magic"))?;
        let stored = u32::from_le_bytes(take(&mut rest)?);
        let computed = crc32(rest);
        if stored != computed {
            return Err(Error::corrupt("the table's checksum does not hold").expected_found(stored, computed));
        }
        let [id_length] = take::<1>(&mut rest)?;
        let (id, after) = rest.split_at_checked(usize::from(id_length)).ok_or_else(cut_short)?;
        rest = after;
        let length = u64::from_le_bytes(take(&mut rest)?);
        let modified = (i64::from_le_bytes(take(&mut rest)?), u32::from_le_bytes(take(&mut rest)?));
        let digest = take(&mut rest)?;
        let runs = u64::from_le_bytes(take(&mut rest)?);
        let mut positions = PositionList::new();
        let mut frame = 0u64;
        for _ in 0..runs {
            let step = take_uvarint(&mut rest)?;
            let items = take_uvarint(&mut rest)?;
            frame = frame.checked_add(step).filter(|&frame| frame <= length).ok_or_else(cut_short)?;
            if items == 0 {
                return Err(Error::corrupt("the table has a run of no records"));
            }
            positions.push_frame(frame, items)?;
        }
        if !rest.is_empty() {
            return Err(Error::corrupt("the table has bytes left over"));
        }
        Ok(Table { format: String::from_utf8_lossy(id).into_owned(), length, modified, digest, positions })
    }
}

fn stale(data: &Path, message: &str) -> Error {
    let name = shown(data);
    Error::new(ErrorKind::Stale, message).in_file(&Table::path_for(data)).with_hint(Hint::index(name))
}

fn modified(data: &Path) -> Result<(i64, u32)> {
    use std::os::unix::fs::MetadataExt;
    let metadata =
        std::fs::metadata(data).map_err(|error| Error::io("cannot inspect", error).in_file(data))?;
    Ok((metadata.mtime(), u32::try_from(metadata.mtime_nsec()).unwrap_or(0)))
}

/// A second pass over the bytes. It keeps calling `progress` with the end that the first pass reached,
/// to show that the work continues.
fn digest(source: &Arc<dyn Source>, progress: &mut dyn FnMut(u64)) -> Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut window = Window::new(source.clone());
    loop {
        let piece = window.peek(1 << 20)?;
        if piece.is_empty() {
            return Ok(hasher.finalize().into());
        }
        hasher.update(piece);
        let length = piece.len() as u64;
        window.skip(length)?;
        progress(source.len());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cut_short() -> Error {
    Error::corrupt("the table is cut short")
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or_else(cut_short)?;
    *rest = tail;
    Ok(*head)
}

fn push_uvarint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn take_uvarint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take::<1>(rest)?;
        let bits = u64::from(byte & 0x7f);
        if bits.checked_shl(shift).is_none_or(|shifted| shifted >> shift != bits) {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Error::corrupt("the table has a number over 64 bits"))
}

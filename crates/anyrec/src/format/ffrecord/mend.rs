//! Packed folders that lost files: rewrites the tree for the remaining ones.

use super::{Reader, packed_folder};
use crate::base::{ErrorKind, Hint, PositionList, Result};
use crate::format::{Mended, Notice, OpenOptions, RecordReader};
use crate::io::Source;
use std::sync::Arc;

/// How a repair treats a packed folder's tree, which is the last of its samples.
pub(super) fn mend(
    source: &Arc<dyn Source>,
    options: &OpenOptions,
    positions: &PositionList,
    rewrite: bool,
) -> Result<Mended> {
    let Some(tree) = lost_tree(source, options, positions)? else { return Ok(Mended::default()) };
    Ok(match rewrite {
        true => Mended {
            record: Some((positions.len().saturating_sub(1), tree)),
            notices: vec![Notice::new("the packed folder's tree was rewritten for the remaining files")],
        },
        false => Mended {
            record: None,
            notices: vec![
                Notice::new(
                    "this packed folder lost files: its tree was kept unchanged and no longer matches",
                )
                .with_hint(Hint::RewriteTree),
            ],
        },
    })
}

/// For a packed folder that lost files: its tree, rewritten for the remaining ones.
fn lost_tree(
    source: &Arc<dyn Source>,
    options: &OpenOptions,
    positions: &PositionList,
) -> Result<Option<Vec<u8>>> {
    if positions.is_empty() {
        return Ok(None);
    }
    let lenient = options.clone().with_skip_damage(true);
    let Some(reader) = unless_damaged(Reader::open(source.clone(), &lenient))? else { return Ok(None) };
    let Some(offsets) = unless_damaged(reader.offsets())? else { return Ok(None) };
    // Map each intact record to its sample: the first that begins at the record's offset, is
    // readable, and has not been used yet.
    let mut kept = Vec::new();
    let mut next = 0;
    for (frame, _) in positions.frames() {
        loop {
            // The last offset is the end of the file.
            let Some(&[offset, _]) = offsets.get(next..).and_then(<[u64]>::first_chunk) else {
                return Ok(None);
            };
            let sample = next as u64;
            next += 1;
            if offset == frame && unless_damaged(reader.read(sample))?.is_some() {
                kept.push(sample);
                break;
            }
        }
    }
    let last = kept.pop().map(|last| unless_damaged(reader.read(last))).transpose()?;
    match last.flatten() {
        Some(last) => packed_folder::retree(&last, &kept),
        None => Ok(None),
    }
}

/// The value, or `None` if damage prevents reading it. A failing disk or a lack of memory is not
/// damage: intact data must not be dropped because of it.
fn unless_damaged<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        Err(error) => Err(error),
    }
}

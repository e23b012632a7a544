//! Packed folders that lost files: their tree, rewritten for those that are left.

use super::{Reader, packed_folder};
use crate::base::{ErrorKind, PositionList, Result};
use crate::format::{Mended, Notice, OpenOptions, RecordReader};
use crate::io::Source;
use std::sync::Arc;

/// What a repair does about a packed folder's tree, which is the last of its samples.
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
            notices: vec![Notice::new(
                "the packed folder's tree was rewritten: it names the files that are left",
            )],
        },
        false => Mended {
            record: None,
            notices: vec![Notice::new(
                "this is a packed folder that lost files: its tree was kept as it is and no longer fits; \
                 repair with `--rebuild-tree` for a folder of the files that are left",
            )],
        },
    })
}

/// For a packed folder that lost files: its tree, rewritten for those that are left.
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
    // Which samples the intact records were: the first that begins where the record does, can be
    // read, and has not been met yet.
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

/// What could be read; none where damage is in the way. A disk that fails, or too little memory, is no
/// damage: what is there must not be left behind for it.
fn unless_damaged<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        Err(error) => Err(error),
    }
}

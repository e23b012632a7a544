//! GRAIL recordio, exchanged with grailbio/base.

mod check;
mod make;
mod rewrite;

use super::Exchange;
use super::manifest::{Digest, Shard};
use super::random::Random;
use super::report::Report;
use anyrec::Result;
use anyrec::Value;
use anyrec::format::OpenOptions;
use anyrec::format::grail::{Scanner, TRANSFORMER_KEY};
use anyrec::io::{Access, open_file};
use anyrec::{BString, Position};
use serde::{Deserialize, Serialize};
use std::path::Path;

pub struct Grail;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    file: String,
    version: u32,
    kind: Kind,
    transformers: Vec<String>,
    header: Vec<Pair>,
    trailer: Option<String>,
    records: Vec<Digest>,
    locations: Vec<(u64, u64)>,
    shards: Vec<Shard>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    V2,
    Unpacked,
    Packed,
    PackedFlate,
    Mixed,
}

/// Key, type and value of a header's pair.
type Pair = (String, String, String);

fn describe_pairs(pairs: &[(BString, Value)]) -> Vec<Pair> {
    let describe = |(key, value): &(BString, Value)| {
        let kind = match value {
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Text(_) => "string",
            _ => "unknown",
        };
        (key.to_string(), kind.to_owned(), value.to_string())
    };
    pairs.iter().map(describe).collect()
}

fn transformers_of(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().filter(|(key, ..)| key == TRANSFORMER_KEY).map(|(_, _, value)| value.clone()).collect()
}

fn as_location(position: Position) -> (u64, u64) {
    (position.frame, position.item)
}

fn scanner(path: &Path) -> Result<Scanner> {
    Scanner::new(open_file(path, Access::Auto)?, &OpenOptions::default())
}

/// The records of shards `[start, limit)` of `n`, and where the first one is.
fn read_shard(path: &Path, start: u64, limit: u64, n: u64) -> Result<(Vec<Digest>, Option<Position>)> {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let source = open_file(path, Access::Auto)?;
    let mut scanner =
        Scanner::new_shard(source, &OpenOptions::default(), number(start), number(limit), number(n))?;
    let (mut records, mut first) = (Vec::new(), None);
    while let Some(item) = scanner.next_item()? {
        records.push(Digest::of(item));
        first = first.or(scanner.location());
    }
    Ok((records, first))
}

impl Exchange for Grail {
    const FORMAT: &'static str = "grail";
    type Entry = Entry;

    fn file(entry: &Entry) -> &str {
        &entry.file
    }

    fn check(folder: &Path, entry: &Entry, report: &mut Report) -> Result<()> {
        check::check(folder, entry, report)
    }

    fn rewrite(folder: &Path, entry: &Entry, scratch: &Path, report: &mut Report) -> Result<bool> {
        rewrite::rewrite(folder, entry, scratch, report)
    }

    fn write(folder: &Path, ordinal: u64, random: &mut Random) -> Result<Entry> {
        make::file(folder, ordinal, random)
    }
}

//! Plain reads and writes of files.

use crate::options::{Failure, Options};
use crate::timing::{Done, once, repeat};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// What one `read(2)` asks for.
const CHUNK: usize = 1 << 20;
/// What `O_DIRECT` wants offsets, lengths and addresses to be multiples of.
const BLOCK: u64 = 4096;

/// Positional reads of the given ranges, into one buffer that is used again for every batch, or
/// for every record.
pub fn pread(options: &Options) -> Result<Done, Failure> {
    let direct = options.is("direct", "yes");
    let file = open(options, direct)?;
    let end = file.metadata()?.len();
    let numbers = options.integers("ranges")?;
    let (pairs, _) = numbers.as_chunks::<2>();
    let ranges: Vec<Range> = pairs.iter().map(|pair| Range::new(*pair, direct, end)).collect();
    let size = options.number("batch")?;
    let batches: Vec<&[Range]> = ranges.chunks(size).collect();
    let largest = batches.iter().map(|batch| batch.iter().map(|range| range.length).sum()).max();
    let mut buffer = Aligned::new(largest.unwrap_or(0));
    let starts_over = options.is("buffer", "record");
    repeat(options, &batches, |batch| {
        let mut rest = buffer.bytes();
        let mut wanted = 0;
        for range in *batch {
            let taken = std::mem::take(&mut rest);
            let (here, behind) =
                taken.split_at_mut_checked(range.length).ok_or_else(|| Failure::new("the buffer is full"))?;
            fill(&file, here, range.offset, end)?;
            wanted += range.wanted;
            rest = if starts_over { buffer.bytes() } else { behind };
        }
        Ok((wanted, batch.len() as u64))
    })
}

/// A range to read, and how many bytes of it were asked for.
struct Range {
    offset: u64,
    length: usize,
    wanted: u64,
}

impl Range {
    fn new([offset, wanted]: [u64; 2], direct: bool, end: u64) -> Self {
        let (offset, until) = if direct {
            (offset - offset % BLOCK, (offset + wanted).next_multiple_of(BLOCK))
        } else {
            (offset, (offset + wanted).min(end))
        };
        Range { offset, length: usize::try_from(until - offset).unwrap_or(usize::MAX), wanted }
    }
}

/// The whole file, front to back, through one buffer.
pub fn read(options: &Options) -> Result<Done, Failure> {
    let mut file = open(options, options.is("direct", "yes"))?;
    let mut buffer = Aligned::new(CHUNK);
    repeat(options, &[()], |()| {
        file.rewind()?;
        let mut bytes = 0;
        loop {
            match file.read(buffer.bytes())? {
                0 => return Ok((bytes, 0)),
                count => bytes += count as u64,
            }
        }
    })
}

/// One `write(2)` a record, to a new file.
pub fn write(options: &Options) -> Result<Done, Failure> {
    let lengths = options.integers("lengths")?;
    let length_of = |length: &u64| usize::try_from(*length).unwrap_or(usize::MAX);
    let source = vec![0x5a; lengths.iter().map(length_of).max().unwrap_or(0)];
    let path = options.path("file")?;
    once(|| {
        let mut file = File::create(&path)?;
        let mut bytes = 0;
        for length in &lengths {
            file.write_all(source.get(..length_of(length)).unwrap_or(&source))?;
            bytes += length;
        }
        Ok((bytes, lengths.len() as u64))
    })
}

fn open(options: &Options, direct: bool) -> Result<File, Failure> {
    let path = options.path("file")?;
    let flags = if direct { libc::O_DIRECT } else { 0 };
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    opened.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, mut buffer: &mut [u8], mut offset: u64, end: u64) -> Result<(), Failure> {
    while !buffer.is_empty() && offset < end {
        let count = file.read_at(buffer, offset)?;
        if count == 0 {
            return Err(Failure::new("the file was cut short"));
        }
        buffer = buffer.get_mut(count..).unwrap_or_default();
        offset += count as u64;
    }
    Ok(())
}

/// Memory that begins where `O_DIRECT` wants it to; touched once, so that no measurement pays for
/// its pages.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let block = usize::try_from(BLOCK).unwrap_or(usize::MAX);
        let memory = vec![1; length + block];
        let begin = memory.as_ptr().align_offset(block);
        Aligned { memory, begin }
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.begin..).unwrap_or_default()
    }
}

//! Files read with positional reads, many ranges at a time.

use super::file::LocalFile;
use super::source::{RangeRead, Source, checked, past_end};
use super::uring::Rings;
use crate::base::Result;
use crate::base::memory::zeroed;
use crate::threads::each_on_a_thread;
use bytes::Bytes;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Alignment of direct reads: no disk has larger blocks.
const BLOCK: usize = 4096;

/// Number of concurrent reads without io_uring.
const THREADS: usize = 8;

/// Minimum number of reads for which threads are worth starting.
const WORTH_THREADS: usize = 16;

#[derive(Debug)]
pub(super) struct PositionalFile {
    common: LocalFile,
    /// Opened without the page cache.
    direct: bool,
    rings: Rings,
}

/// A read of which only the first `needed` bytes must exist.
pub(super) struct Job<'a> {
    pub(super) offset: u64,
    pub(super) buffer: &'a mut [u8],
    pub(super) needed: usize,
}

impl PositionalFile {
    pub(super) fn new(common: LocalFile, direct: bool) -> Self {
        PositionalFile { common, direct, rings: Rings::default() }
    }

    fn read_jobs(&self, jobs: &mut [Job<'_>]) -> Result<()> {
        let outcome = self.read_together(jobs);
        outcome.map_err(|(offset, error)| match error.kind() {
            io::ErrorKind::UnexpectedEof => self
                .check_unchanged()
                .err()
                .unwrap_or_else(|| past_end(self.name(), self.len(), &(offset..offset + 1))),
            _ => self.common.io_error("cannot read", error).at(offset),
        })
    }

    fn read_together(&self, jobs: &mut [Job<'_>]) -> std::result::Result<(), (u64, io::Error)> {
        if let [only] = jobs {
            return self.read_one(only);
        }
        if let Some(outcome) = self.rings.read(&self.common.file, jobs) {
            return outcome;
        }
        if jobs.len() < WORTH_THREADS {
            return jobs.iter_mut().try_for_each(|job| self.read_one(job));
        }
        let share = jobs.len().div_ceil(THREADS);
        let shares = jobs.chunks_mut(share).map(|jobs| (jobs, Ok(()))).collect();
        let read = each_on_a_thread(shares, |(jobs, outcome): &mut (&mut [Job<'_>], _)| {
            *outcome = jobs.iter_mut().try_for_each(|job| self.read_one(job));
            Ok(())
        });
        match read {
            Ok(shares) => shares.into_iter().try_for_each(|(_, outcome)| outcome),
            Err(panic) => Err((0, io::Error::other(panic.to_string()))),
        }
    }

    fn read_one(&self, job: &mut Job<'_>) -> std::result::Result<(), (u64, io::Error)> {
        let mut done = 0;
        while done < job.needed {
            let (at, rest) = (job.offset + done as u64, job.buffer.get_mut(done..).unwrap_or_default());
            match self.common.file.read_at(rest, at) {
                Ok(0) => return Err((at, io::ErrorKind::UnexpectedEof.into())),
                Ok(got) => done += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((at, error)),
            }
        }
        Ok(())
    }

    /// Reads complete blocks into separate memory, and copies out of it.
    fn read_direct(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        let blocks = reads.iter().map(|read| Aligned::around(read.offset, read.buffer.len()));
        let mut blocks = blocks.collect::<Result<Vec<Aligned>>>()?;
        let mut jobs: Vec<Job<'_>> = blocks.iter_mut().map(Aligned::job).collect();
        self.read_jobs(&mut jobs)?;
        for (read, blocks) in reads.iter_mut().zip(&blocks) {
            read.buffer.copy_from_slice(blocks.wanted());
        }
        Ok(())
    }
}

/// Memory for the blocks around a range, aligned for direct reads.
struct Aligned {
    memory: Vec<u8>,
    /// The aligned part of the memory, a whole number of blocks.
    blocks: Range<usize>,
    /// The first block's offset in the file.
    offset: u64,
    /// The range within the memory.
    wanted: Range<usize>,
}

impl Aligned {
    /// For `size` bytes at `offset`. The caller already holds that much memory for them.
    fn around(offset: u64, size: usize) -> Result<Self> {
        // Smaller than a block.
        #[allow(clippy::cast_possible_truncation)]
        let before = (offset % BLOCK as u64) as usize;
        let blocks = (before + size).next_multiple_of(BLOCK);
        let memory = zeroed(blocks + BLOCK)?;
        let shift = memory.as_ptr().align_offset(BLOCK);
        let begin = shift + before;
        let offset = offset - before as u64;
        Ok(Aligned { memory, blocks: shift..shift + blocks, offset, wanted: begin..begin + size })
    }

    fn job(&mut self) -> Job<'_> {
        let needed = self.wanted.end - self.blocks.start;
        let buffer = self.memory.get_mut(self.blocks.clone()).unwrap_or_default();
        Job { offset: self.offset, buffer, needed }
    }

    fn wanted(&self) -> &[u8] {
        self.memory.get(self.wanted.clone()).unwrap_or_default()
    }
}

impl Source for PositionalFile {
    fn len(&self) -> u64 {
        self.common.length
    }

    fn name(&self) -> &str {
        &self.common.name
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.common.path)
    }

    fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
        for read in &*reads {
            checked(self, &(read.offset..read.offset.saturating_add(read.buffer.len() as u64)))?;
        }
        if self.direct {
            return self.read_direct(reads);
        }
        let mut jobs: Vec<Job<'_>> = reads
            .iter_mut()
            .map(|read| Job { offset: read.offset, needed: read.buffer.len(), buffer: read.buffer })
            .collect();
        self.read_jobs(&mut jobs)
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        let size = checked(self, &range)?.len();
        if !self.direct {
            return Ok(self.common.read_to_vec(range.start, size)?.into());
        }
        let mut buffer = zeroed(size)?;
        self.read_direct(&mut [RangeRead { offset: range.start, buffer: &mut buffer }])?;
        Ok(buffer.into())
    }

    fn check_unchanged(&self) -> Result<()> {
        self.common.check_unchanged()
    }

    fn check_still_named(&self) -> Result<()> {
        self.common.check_still_named()
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::{Access, open_file};
    use super::*;

    #[test]
    fn many_ranges_are_read_as_one_by_one() {
        // Not in /tmp, which may be a file system without direct reads.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("some bytes");
        let data: Vec<u8> =
            (0..1_234_567u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
        std::fs::write(&path, &data).unwrap();
        for access in [Access::Mapped, Access::Positional, Access::Direct] {
            let source = open_file(&path, access).unwrap();
            for count in [1, 2, 15, 300] {
                let ranges: Vec<Range<u64>> = (0..count)
                    .map(|i| (i * 987_654_321) % 1_200_000)
                    .map(|begin| begin..(begin + begin % 40_000).min(data.len() as u64))
                    .chain([0..0, 1_234_560..1_234_567, 0..1_234_567])
                    .collect();
                for (range, bytes) in ranges.iter().zip(source.many_bytes(&ranges).unwrap()) {
                    let place = |offset| usize::try_from(offset).unwrap();
                    assert_eq!(bytes, data[place(range.start)..place(range.end)], "{access:?} {range:?}");
                }
            }
            assert!(source.many_bytes(&[0..1, 1_234_000..1_234_568]).is_err());
        }
    }

    #[test]
    fn a_file_that_was_cut_short_is_an_error_in_any_of_the_ways() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("cut");
        for access in [Access::Positional, Access::Direct] {
            std::fs::write(&path, vec![7; 100_000]).unwrap();
            let source = open_file(&path, access).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_len(50_000).unwrap();
            let ranges: Vec<Range<u64>> = (0..99).map(|i| i * 1000..i * 1000 + 1000).collect();
            let error = source.many_bytes(&ranges).unwrap_err();
            assert!(error.to_string().contains("cut short while open"), "{error}");
        }
    }
}

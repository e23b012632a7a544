//! Reads a file block by block, on two threads.
//!
//! Accessing a mapped page for the first time costs about as much as having the operating system
//! copy its bytes, which needs no page table and leaves them in the cache. A scan that copies
//! everything it reads is therefore faster over blocks than over the map, especially since another
//! thread can read them. The scan never waits for that thread while there is anything left to read:
//! it then reads a block itself, so that both threads together set the speed.

use super::source::{RangeRead, Source};
use crate::base::Result;
use crate::base::memory::reserve;
use crate::threads::fork::generation;
use crate::threads::{caught, in_background};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Size of a block, except the last one.
pub(super) const BLOCK: usize = 512 << 10;
/// Minimum number of bytes that fit in front of a block.
pub(super) const HEADROOM: usize = BLOCK;
/// Blocks begin at a multiple of this in memory, as in the file. If they begin just after such a
/// multiple, which is where allocators place memory, the operating system copies them at half the
/// speed.
const ALIGNMENT: usize = 4096;
/// Size of the memory for a block, wherever its beginning falls.
const MEMORY: usize = ALIGNMENT + HEADROOM + BLOCK;
/// Number of blocks that are being read or wait to be used: few enough to stay in the processor's
/// caches.
const WAITING: usize = 4;

/// The blocks of a source.
pub(super) struct ReadAhead {
    shared: Arc<Shared>,
    /// A forked child has the state but not the thread, and possibly a lock that is never released.
    process: u32,
}

struct Shared {
    source: Arc<dyn Source>,
    state: Mutex<State>,
    /// Signals that a block was read.
    read: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the first of `begun`; block 0 begins at byte 0.
    first: u64,
    /// Blocks that are being read (`None`) or were read. [`begin_of`] gives their offset in the
    /// memory.
    begun: VecDeque<Option<Result<Vec<u8>>>>,
    /// Memory to reuse.
    spare: Vec<Vec<u8>>,
    /// Whether the other thread is reading.
    at_work: bool,
    /// Whether no more blocks are wanted.
    closed: bool,
}

impl ReadAhead {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        let shared = Shared { source, state: Mutex::default(), read: Condvar::new() };
        ReadAhead { shared: Arc::new(shared), process: generation() }
    }

    /// Takes the block with that number, which must exist and come after the last one taken. Its
    /// memory has space before it.
    ///
    /// # Errors
    /// Same as [`Source::read_ranges`].
    pub(super) fn take(&mut self, number: u64) -> Result<Vec<u8>> {
        if self.process != generation() {
            self.start_over();
        }
        let mut state = self.shared.state();
        state.move_to(number);
        let block = loop {
            if let Some(block) = state.next_read() {
                break block;
            }
            state = match self.shared.begin(&mut state) {
                Some(number) => {
                    drop(state);
                    self.shared.read(number);
                    self.shared.state()
                }
                None => self.shared.read.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        };
        let wake = !state.at_work && state.begun.len() <= WAITING / 2;
        state.at_work |= wake;
        drop(state);
        if wake {
            let shared = Arc::clone(&self.shared);
            in_background(move || shared.run_ahead());
        }
        // A retry after an error must get the same block.
        block.inspect_err(|_| self.start_over())
    }

    fn start_over(&mut self) {
        *self = ReadAhead::new(Arc::clone(&self.shared.source));
    }

    /// Returns the memory of a block.
    pub(super) fn give(&self, block: Vec<u8>) {
        if self.process == generation() {
            self.shared.state().keep(block);
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        if self.process == generation() {
            self.shared.state().closed = true;
        }
    }
}

/// The offset of a block in its memory, which ends where the block ends.
pub(super) fn begin_of(memory: &[u8]) -> usize {
    HEADROOM + memory.as_ptr().align_offset(ALIGNMENT)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one block and reschedules itself, so that other users of the same thread get their
    /// turn.
    fn run_ahead(self: Arc<Self>) {
        let mut state = self.state();
        let Some(number) = self.begin(&mut state) else {
            state.at_work = false;
            return;
        };
        drop(state);
        self.read(number);
        in_background(move || self.run_ahead());
    }

    /// The number of the next block, if it should be read now. The caller must then read it.
    fn begin(&self, state: &mut State) -> Option<u64> {
        let number = state.first + state.begun.len() as u64;
        let there = number.checked_mul(BLOCK as u64).is_some_and(|begin| begin < self.source.len());
        if !there || state.closed || state.begun.len() >= WAITING {
            return None;
        }
        state.begun.push_back(None);
        Some(number)
    }

    fn read(&self, number: u64) {
        // A panic must also reach the thread that waits for the block.
        let read = caught(|| self.read_block(number));
        let mut state = self.state();
        let place = number.checked_sub(state.first).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| state.begun.get_mut(place)) {
            Some(slot) => *slot = Some(read),
            // The scan has moved past it in the meantime.
            None => state.keep(read.unwrap_or_default()),
        }
        drop(state);
        self.read.notify_one();
    }

    fn read_block(&self, number: u64) -> Result<Vec<u8>> {
        let mut memory = self.state().spare.pop().unwrap_or_default();
        if memory.capacity() < MEMORY {
            reserve(&mut memory, MEMORY)?;
        }
        let place = begin_of(&memory);
        let begin = number * BLOCK as u64;
        let size = usize::try_from(self.source.len() - begin).map_or(BLOCK, |left| left.min(BLOCK));
        memory.resize(place + size, 0);
        let buffer = memory.get_mut(place..).unwrap_or_default();
        self.source.read_ranges(&mut [RangeRead { offset: begin, buffer }])?;
        Ok(memory)
    }
}

impl State {
    /// Keeps memory for reuse. Memory that is too small would be moved when it grows, and a block
    /// would then begin elsewhere in it.
    fn keep(&mut self, memory: Vec<u8>) {
        if memory.capacity() >= MEMORY {
            self.spare.push(memory);
        }
    }

    /// The first of the blocks, if it was read.
    fn next_read(&mut self) -> Option<Result<Vec<u8>>> {
        let block = self.begun.front_mut()?.take()?;
        self.begun.pop_front();
        self.first += 1;
        Some(block)
    }

    /// Releases the blocks before that one.
    fn move_to(&mut self, number: u64) {
        while self.first < number
            && let Some(block) = self.begun.pop_front()
        {
            self.keep(block.and_then(Result::ok).unwrap_or_default());
            self.first += 1;
        }
        self.first = self.first.max(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::ops::Range;

    /// A source whose reads panic from some offset on.
    #[derive(Debug)]
    struct Panics(u64);

    impl Source for Panics {
        fn len(&self) -> u64 {
            100 * BLOCK as u64
        }

        fn name(&self) -> &str {
            "panics"
        }

        fn read_ranges(&self, reads: &mut [RangeRead<'_>]) -> Result<()> {
            assert!(reads.iter().all(|read| read.offset < self.0), "on purpose");
            Ok(())
        }

        fn bytes(&self, _range: Range<u64>) -> Result<Bytes> {
            Ok(Bytes::new())
        }
    }

    #[test]
    fn a_panic_in_the_thread_that_reads_ahead_is_an_error_of_its_block() {
        for good in [0, 1, 3, 20] {
            let mut blocks = ReadAhead::new(Arc::new(Panics(good * BLOCK as u64)));
            for number in 0..good {
                blocks.take(number).unwrap();
            }
            let error = blocks.take(good).unwrap_err();
            assert!(error.to_string().contains("on purpose"), "{error}");
            blocks.take(good).unwrap_err();
        }
    }
}

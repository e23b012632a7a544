//! Writes version 2 files.

use super::header::{Header, TRAILER_KEY, TRANSFORMER_KEY};
use super::layout::{self, BlockKind};
use super::options::{self as own, Version};
use super::output::Output;
use super::pipeline::Pipeline;
use crate::base::memory::reserve;
use crate::base::{Error, Position, Result, Tags, Value};
use crate::format::writer::DroppedTags;
use crate::format::{Notice, RecordWriter, WriteOptions, Written};
use crate::io::{AtomicFile, FileSet};
use bstr::BString;
use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::path::Path;

/// Default number of items per block (in fact one more, see [`Writer::append`]).
const DEFAULT_MAX_ITEMS: u64 = 16 << 10;
/// The largest number that can be requested.
const LARGEST_MAX_ITEMS: u64 = 10 << 20;
const DEFAULT_PARALLELISM: usize = 8;
const LARGEST_PARALLELISM: usize = 128;
/// Unless a number of items is requested, the writer behind [`RecordWriter`] also ends blocks at
/// this many bytes: 16 385 large records would not fit into memory.
const BLOCK_BYTES: usize = 4 << 20;

/// Called in order for every item once its position is known: (number of the item, position).
type IndexCallback<'a> = Box<dyn FnMut(u64, Position) -> Result<()> + Send + 'a>;

/// Writes a version 2 file, or a part of one, to a file or to any [`Write`].
///
/// The calls must come in this order: [`add_header`](Writer::add_header) any number of times; then
/// [`append`](Writer::append), [`flush`](Writer::flush) and [`wait`](Writer::wait) in any order;
/// [`set_trailer`](Writer::set_trailer) at most once; [`finish`](Writer::finish). Anything else is
/// an [`Invalid`](crate::ErrorKind::Invalid) error. `finish` publishes a file.
///
/// Blocks are transformed on up to [`WriteOptions::parallelism`](own::WriteOptions::parallelism) threads and written in order. At
/// most that many blocks, one that waits and the one being filled are in memory. A failure on a
/// thread is returned by a later call. After any failure, every call fails.
///
/// ```
/// use anyrec::Value;
/// use anyrec::format::grail::{self, Transform};
///
/// let mut options = grail::WriteOptions::default().with_trailer(true);
/// # #[cfg(feature = "zstd")] {
/// options = options.with_transformer(Transform::zstd());
/// # }
/// let mut file = Vec::new();
/// let mut writer = grail::Writer::new(&mut file, &options)?;
/// writer.add_header("made by", Value::Text("an example".into()))?;
/// for number in 0..1000u32 {
///     writer.append(&number.to_le_bytes())?;
/// }
/// writer.set_trailer(b"the end")?;
/// let written = writer.finish()?;
/// assert_eq!((written.records, written.bytes), (1000, 3 * 32768));
/// # Ok::<(), anyrec::Error>(())
/// ```
pub struct Writer<'a> {
    sink: Option<Output<'a>>,
    pipeline: Pipeline,
    /// Kind and number of items of the blocks in the pipeline, oldest first.
    in_flight: VecDeque<(BlockKind, u64)>,
    header: Header,
    skip_header: bool,
    /// Whether the header block must be written before the next block.
    owes_header: bool,
    index: Option<IndexCallback<'a>>,
    state: State,
    /// The failure that made the writer unusable.
    failure: Option<String>,
    /// Maximum number of items in a block.
    block_items: usize,
    sizes: Vec<u64>,
    data: Vec<u8>,
    /// Bytes written.
    offset: u64,
    /// Number of items appended, and of items whose position was reported.
    appended: u64,
    indexed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Initial,
    Body,
    Trailer,
    Finished,
}

impl Writer<'static> {
    /// Creates a writer for the file `path`, which [`finish`](Writer::finish) publishes.
    ///
    /// # Errors
    /// Same as [`Writer::new`]; [`Exists`](crate::ErrorKind::Exists) if the file exists and
    /// may not be replaced.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let mut writer = Self::over(None, &options.only()?)?;
        writer.sink =
            Some(Output::File(AtomicFile::create_or_stream(path, options.overwrite, options.durability)?));
        Ok(writer)
    }
}

impl<'a> Writer<'a> {
    /// Creates a writer to a stream. Anything written before a failure remains in the stream.
    ///
    /// # Errors
    /// An unknown transformer, or one whose config or key is missing; a setting that version 2 does
    /// not have.
    pub fn new(stream: impl Write + Send + 'a, options: &own::WriteOptions) -> Result<Self> {
        Self::over(Some(Output::stream(stream)), options)
    }

    fn over(sink: Option<Output<'a>>, options: &own::WriteOptions) -> Result<Self> {
        if options.version != Version::Two {
            return Err(Error::invalid("this writer writes version 2"));
        }
        let chain = options.registry.encoders(&options.transformers)?;
        let parallelism = match options.parallelism {
            None | Some(0) => DEFAULT_PARALLELISM,
            Some(blocks) => blocks.min(LARGEST_PARALLELISM),
        };
        let max_items = match options.max_items {
            None | Some(0) => DEFAULT_MAX_ITEMS,
            Some(items) => items.min(LARGEST_MAX_ITEMS),
        };
        let mut header = Header::default();
        for entry in &options.transformers {
            header.push(TRANSFORMER_KEY, Value::Text(entry.to_string().into()));
        }
        if options.trailer {
            header.push(TRAILER_KEY, Value::Bool(true));
        }
        for (key, value) in &options.header {
            header.push(key.clone(), value.clone());
        }
        Ok(Writer {
            sink,
            pipeline: Pipeline::new(chain, parallelism),
            in_flight: VecDeque::new(),
            header,
            skip_header: false,
            owes_header: false,
            index: None,
            state: State::Initial,
            failure: None,
            block_items: usize::try_from(max_items).unwrap_or(usize::MAX).saturating_add(1),
            sizes: Vec::new(),
            data: Vec::new(),
            offset: 0,
            appended: 0,
            indexed: 0,
        })
    }

    /// Appends a pair to the header. A key may be repeated: both pairs are kept.
    ///
    /// # Errors
    /// After the first record, trailer or finish.
    pub fn add_header(&mut self, key: impl Into<BString>, value: Value) -> Result<()> {
        self.require(&[State::Initial], "add a header pair")?;
        self.header.push(key, value);
        Ok(())
    }

    /// Omits the header block, for output that is appended to another writer's. Positions are then
    /// relative to the beginning of this output.
    ///
    /// # Errors
    /// After the first record, trailer or finish.
    pub fn skip_header(&mut self) -> Result<()> {
        self.require(&[State::Initial], "skip the header")?;
        self.skip_header = true;
        Ok(())
    }

    /// Sets a callback that receives the number and position of every item, in order, once its
    /// block is written.
    ///
    /// # Errors
    /// After the first record, trailer or finish.
    pub fn on_index(&mut self, callback: impl FnMut(u64, Position) -> Result<()> + Send + 'a) -> Result<()> {
        self.require(&[State::Initial], "set the index callback")?;
        self.index = Some(Box::new(callback));
        Ok(())
    }

    /// Appends an item. A block ends after [`WriteOptions::max_items`](own::WriteOptions::max_items) items *and one more*, as in
    /// the original.
    ///
    /// # Errors
    /// After the trailer or finish; errors of a transformer or the operating system from an earlier
    /// block.
    pub fn append(&mut self, item: &[u8]) -> Result<()> {
        self.require(&[State::Initial, State::Body], "append a record")?;
        self.begin();
        reserve(&mut self.sizes, 1)?;
        reserve(&mut self.data, item.len())?;
        self.sizes.push(item.len() as u64);
        self.data.extend_from_slice(item);
        self.appended += 1;
        if self.sizes.len() >= self.block_items { self.end_block() } else { Ok(()) }
    }

    /// Ends the block, so that the next item begins a new one. Does nothing if no item was added
    /// since the last block.
    ///
    /// # Errors
    /// Same as [`append`](Writer::append).
    pub fn flush(&mut self) -> Result<()> {
        self.require(&[State::Initial, State::Body], "flush")?;
        if self.sizes.is_empty() { Ok(()) } else { self.end_block() }
    }

    /// Waits until all ended blocks are written.
    ///
    /// # Errors
    /// Same as [`append`](Writer::append).
    pub fn wait(&mut self) -> Result<()> {
        self.require(&[State::Initial, State::Body, State::Trailer], "wait")?;
        self.write_all_blocks()
    }

    /// Sets the trailer, after the last item.
    ///
    /// # Errors
    /// If the header does not declare one (by [`WriteOptions::trailer`](own::WriteOptions::trailer), or a first pair `trailer`
    /// that is true), after another trailer, after finish.
    pub fn set_trailer(&mut self, trailer: &[u8]) -> Result<()> {
        self.require(&[State::Initial, State::Body], "set the trailer")?;
        if !self.header.has_trailer() {
            return Err(Error::invalid(
                "the header does not promise a trailer: its key `trailer` must be true",
            ));
        }
        self.flush()?;
        self.begin();
        self.state = State::Trailer;
        let mut block = Vec::new();
        layout::put_item_list(&[trailer.len() as u64], &mut block);
        block.extend_from_slice(trailer);
        self.submit(BlockKind::Trailer, 1, block)
    }

    /// Withdraws the declaration of a trailer: the header's `trailer` becomes false, in place if it
    /// was already written. For callers that learn only at the end whether there is a trailer.
    ///
    /// # Errors
    /// After the trailer or finish; [`Unsupported`](crate::ErrorKind::Unsupported) on a
    /// stream whose header is already written.
    pub fn withdraw_trailer(&mut self) -> Result<()> {
        self.require(&[State::Initial, State::Body], "withdraw the trailer")?;
        if !self.header.has_trailer() {
            return Ok(());
        }
        self.write_all_blocks()?;
        self.header.withdraw_trailer();
        if self.skip_header || self.owes_header || self.state == State::Initial {
            return Ok(());
        }
        let mut chunks = Vec::new();
        layout::encode_block(BlockKind::Header, &self.header_block(), &mut chunks)?;
        match &mut self.sink {
            Some(Output::File(file)) => file.overwrite_at(0, &chunks),
            _ => Err(Error::unsupported("the header of a stream cannot be changed once it is written")),
        }
    }

    /// Writes everything still in memory and completes the output.
    ///
    /// # Errors
    /// Same as [`append`](Writer::append), or a second call. On error, a file is not published.
    pub fn finish(&mut self) -> Result<Written> {
        let (written, files) = self.complete()?;
        files.publish()?;
        Ok(written)
    }

    /// [`finish`](Writer::finish) without publishing the file.
    fn complete(&mut self) -> Result<(Written, FileSet)> {
        self.require(&[State::Initial, State::Body, State::Trailer], "finish")?;
        self.begin();
        if !self.sizes.is_empty() {
            self.end_block()?;
        }
        self.write_all_blocks()?;
        let mut notices = Vec::new();
        if self.header.has_trailer() && self.state != State::Trailer && !self.skip_header {
            notices.push(Notice::new("the header promises a trailer, but none was set"));
        }
        self.state = State::Finished;
        let files = self.sink.take().map(Output::complete).transpose()?.unwrap_or_default();
        Ok((Written::new(self.appended, self.offset, notices), files))
    }

    /// Size of the block being filled, in bytes.
    pub fn buffered(&self) -> usize {
        self.data.len()
    }

    fn require(&self, states: &[State], what: &str) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(Error::invalid(format!("cannot {what}: the writer failed earlier: {failure}")));
        }
        if states.contains(&self.state) {
            return Ok(());
        }
        let when = match self.state {
            State::Initial => "before the first record",
            State::Body => "after the first record",
            State::Trailer => "after the trailer",
            State::Finished => "after the file was finished",
        };
        Err(Error::invalid(format!("cannot {what} {when}")))
    }

    /// Called when the header is complete.
    fn begin(&mut self) {
        if self.state == State::Initial {
            self.state = State::Body;
            self.owes_header = !self.skip_header;
        }
    }

    fn end_block(&mut self) -> Result<()> {
        let mut sizes = std::mem::take(&mut self.sizes);
        let mut data = std::mem::take(&mut self.data);
        let items = sizes.len() as u64;
        let mut block = Vec::new();
        layout::put_item_list(&sizes, &mut block);
        let done = if self.pipeline.is_idle() {
            self.write_body([&block, &data], items).map_err(|error| self.fail(error))
        } else {
            reserve(&mut block, data.len()).map_err(|error| self.fail(error))?;
            block.extend_from_slice(&data);
            self.submit(BlockKind::Body, items, block)
        };
        // Keep the memory for the next block.
        sizes.clear();
        data.clear();
        (self.sizes, self.data) = (sizes, data);
        done
    }

    fn write_body(&mut self, block: [&[u8]; 2], items: u64) -> Result<()> {
        self.write_header()?;
        let frame = self.write_block(BlockKind::Body, block)?;
        self.tell_positions(frame, items)
    }

    fn submit(&mut self, kind: BlockKind, items: u64, block: Vec<u8>) -> Result<()> {
        while self.pipeline.is_full()
            && let Some(result) = self.pipeline.next()
        {
            self.write_result(result)?;
        }
        self.in_flight.push_back((kind, items));
        self.pipeline.submit(block).map_err(|error| self.fail(error))?;
        while let Some(result) = self.pipeline.next_if_ready() {
            self.write_result(result)?;
        }
        Ok(())
    }

    fn write_all_blocks(&mut self) -> Result<()> {
        while let Some(result) = self.pipeline.next() {
            self.write_result(result)?;
        }
        self.write_header().map_err(|error| self.fail(error))
    }

    fn write_result(&mut self, result: Result<Vec<u8>>) -> Result<()> {
        let Some((kind, items)) = self.in_flight.pop_front() else { return Ok(()) };
        result
            .and_then(|stored| {
                if kind == BlockKind::Body {
                    return self.write_body([&stored, &[]], items);
                }
                self.write_header()?;
                self.write_block(kind, [&stored, &[]]).map(drop)
            })
            .map_err(|error| self.fail(error))
    }

    /// Writes the header block if it is due. It waits for the first block, so that nothing is
    /// written if a transformer fails on that block.
    fn write_header(&mut self) -> Result<()> {
        if !self.owes_header {
            return Ok(());
        }
        self.owes_header = false;
        self.write_block(BlockKind::Header, [&self.header_block(), &[]]).map(drop)
    }

    fn header_block(&self) -> Vec<u8> {
        let header = self.header.encode();
        let mut block = Vec::new();
        layout::put_item_list(&[header.len() as u64], &mut block);
        block.extend_from_slice(&header);
        block
    }

    /// Writes a block, given in two pieces, and returns its offset.
    fn write_block(&mut self, kind: BlockKind, stored: [&[u8]; 2]) -> Result<u64> {
        let begin = self.offset;
        let Writer { sink, offset, .. } = self;
        layout::encode_chunks(kind, stored, |chunk| {
            *offset += chunk.len() as u64;
            sink.as_mut().map_or(Ok(()), |sink| sink.append(chunk))
        })?;
        Ok(begin)
    }

    fn tell_positions(&mut self, frame: u64, items: u64) -> Result<()> {
        if let Some(callback) = &mut self.index {
            for item in 0..items {
                callback(self.indexed + item, Position { frame, item })?;
            }
        }
        self.indexed += items;
        Ok(())
    }

    fn fail(&mut self, error: Error) -> Error {
        self.failure = Some(error.to_string());
        error
    }
}

/// The version 2 writer behind the interface shared by all formats.
pub(super) struct FileWriter {
    writer: Writer<'static>,
    dropped: DroppedTags,
    /// Whether blocks also end at [`BLOCK_BYTES`].
    bounded: bool,
}

impl FileWriter {
    pub(super) fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let writer = Writer::create(path, options)?;
        Ok(FileWriter {
            writer,
            dropped: DroppedTags::default(),
            bounded: options.own::<own::WriteOptions>().max_items.is_none(),
        })
    }
}

impl RecordWriter for FileWriter {
    fn append(&mut self, record: &[u8], tags: &Tags) -> Result<u64> {
        self.dropped.count(tags, false, false);
        let number = self.writer.appended;
        self.writer.append(record)?;
        if self.bounded && self.writer.buffered() >= BLOCK_BYTES {
            self.writer.flush()?;
        }
        Ok(number)
    }

    fn has_room(&self, size: usize) -> bool {
        let Writer { sizes, data, block_items, .. } = &self.writer;
        sizes.len() + 1 < *block_items && data.len().saturating_add(size) < BLOCK_BYTES
    }

    fn set_trailer(&mut self, trailer: &[u8]) -> Result<()> {
        self.writer.set_trailer(trailer)
    }

    fn complete(mut self: Box<Self>) -> Result<(Written, FileSet)> {
        let (mut written, files) = self.writer.complete()?;
        written.notices.extend(self.dropped.notices("GRAIL"));
        Ok((written, files))
    }
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("appended", &self.appended)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

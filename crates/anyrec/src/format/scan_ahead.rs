//! A scan on several threads that run ahead of its consumer.
//!
//! Each thread takes the next segment of the file ([`Format::segments`]), scans it, and hands the events
//! over in chunks; they come out in file order. A file that cannot be cut into segments is read by one
//! thread. What waits to be taken is bounded, so memory does not grow with the file.
//!
//! The events are those of the plain scan. Where segments do not join, or one cannot be read to its
//! end, a plain scan starts over, passes by what was given already, and continues from there.

use crate::base::memory::reserve;
use crate::base::{Batch, Error, Position, Result};
use crate::format::{Damage, Event, Format, Integrity, OpenOptions, Scan, ScannedRecord, Segments};
use crate::io::{Source, Window};
use crate::threads::{Next, Ordered};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of file that a thread takes at a time; smaller files are scanned plainly.
const SEGMENT: u64 = 1 << 20;
/// Bytes of records, and number of events, that are handed over at a time.
const CHUNK: (usize, usize) = (1 << 20, 1 << 14);
/// More threads than this outrun any writer, and each holds segments in memory.
const MOST_THREADS: usize = 8;

/// Starts a scan at the window's place on as many threads as `options` allow.
///
/// # Errors
/// As [`Format::scan`].
pub(crate) fn scan_ahead(
    format: &'static dyn Format,
    window: Window,
    options: &OpenOptions,
) -> Result<Box<dyn Scan>> {
    scan_ahead_in_segments(format, window, options, SEGMENT)
}

/// [`scan_ahead`] in segments of about that many bytes.
///
/// # Errors
/// As [`Format::scan`].
pub(crate) fn scan_ahead_in_segments(
    format: &'static dyn Format,
    window: Window,
    options: &OpenOptions,
    size: u64,
) -> Result<Box<dyn Scan>> {
    let window = window.read_ahead();
    let threads = options.thread_count().min(MOST_THREADS);
    if threads == 1 || window.length().is_some_and(|length| length <= size) {
        return format.scan(window, options);
    }
    if let Some(source) = window.source().cloned()
        && let Some(segments) = segments(&source, format, options, threads, size)?
    {
        let origin = Origin { source, format, options: options.clone() };
        return ScanAhead::over_segments(segments, threads, origin);
    }
    ScanAhead::over_whole(format.scan(window, options)?)
}

/// The segments of a file that so many threads scan; none where it is not worth it. Each thread has its
/// share of the memory limit: a segment that needs more fails, and the caller scans the file plainly.
///
/// # Errors
/// As [`Format::segments`].
pub(crate) fn segments(
    source: &Arc<dyn Source>,
    format: &'static dyn Format,
    options: &OpenOptions,
    threads: usize,
    size: u64,
) -> Result<Option<Arc<dyn Segments>>> {
    if threads == 1 {
        return Ok(None);
    }
    let options = options.clone().with_limits(options.limits.shared_by(threads));
    let segments = format.segments(source, &options, size)?;
    Ok(segments.filter(|segments| segments.begins().len() > 1).map(Arc::from))
}

/// Chunks that were used, to be filled again.
type Spare = Arc<Mutex<Vec<Chunk>>>;

/// Some events, with the records' bytes back to back.
#[derive(Default)]
struct Chunk {
    data: Vec<u8>,
    events: Vec<Stored>,
}

enum Stored {
    Record { position: Position, span: Range<u64>, integrity: Integrity, data: Range<usize> },
    Other(Event<'static>),
}

/// What a plain scan would start from.
struct Origin {
    source: Arc<dyn Source>,
    format: &'static dyn Format,
    options: OpenOptions,
}

struct ScanAhead {
    /// Chunks of events in file order; gone when nothing more is wanted of the threads.
    chunks: Option<Ordered<Chunk>>,
    spare: Spare,
    origin: Option<Origin>,
    /// Where the next segments begin.
    begins: std::vec::IntoIter<u64>,
    chunk: Chunk,
    /// The next event of `chunk`.
    next: usize,
    /// Events given so far, to be passed by if a plain scan must take over.
    given: u64,
    /// Records in the segments before the current one, and in this one so far.
    records: (u64, u64),
    /// Where the last event ended.
    end: u64,
    plain: Option<Box<dyn Scan>>,
}

impl ScanAhead {
    fn over_segments(segments: Arc<dyn Segments>, threads: usize, origin: Origin) -> Result<Box<dyn Scan>> {
        let begins: Vec<u64> = segments.begins().iter().skip(1).copied().collect();
        let spare = Spare::default();
        let used = Arc::clone(&spare);
        let chunks = Ordered::start("anyrec-scan", threads, begins.len() + 1, move |segment, emit| {
            hand_over(&mut *segments.scan(segment)?, &used, emit)
        });
        let mut scan = Self::new(chunks, spare, Some(origin), begins);
        if scan.chunks.is_none() {
            scan.start_over(None)?;
        }
        Ok(Box::new(scan))
    }

    fn over_whole(scan: Box<dyn Scan>) -> Result<Box<dyn Scan>> {
        let scan = Arc::new(Mutex::new(Some(scan)));
        let taken = Arc::clone(&scan);
        let take = |scan: &Mutex<Option<_>>| scan.lock().unwrap_or_else(PoisonError::into_inner).take();
        let spare = Spare::default();
        let used = Arc::clone(&spare);
        let chunks = Ordered::start("anyrec-scan", 1, 1, move |_, emit| match take(&taken) {
            Some(mut scan) => hand_over(&mut *scan, &used, emit),
            None => Ok(()),
        });
        match chunks {
            Some(_) => Ok(Box::new(Self::new(chunks, spare, None, Vec::new()))),
            // No thread could be started, so nobody took the scan.
            None => take(&scan).ok_or_else(|| Error::invalid("a scan was taken twice")),
        }
    }

    fn new(chunks: Option<Ordered<Chunk>>, spare: Spare, origin: Option<Origin>, begins: Vec<u64>) -> Self {
        ScanAhead {
            chunks,
            spare,
            origin,
            begins: begins.into_iter(),
            chunk: Chunk::default(),
            next: 0,
            given: 0,
            records: (0, 0),
            end: 0,
            plain: None,
        }
    }

    /// Gets the next chunk, unless the end is reached or a plain scan takes over.
    fn refill(&mut self) -> Result<()> {
        while let Some(chunks) = &mut self.chunks {
            match chunks.next() {
                Next::Item(chunk) => {
                    let used = std::mem::replace(&mut self.chunk, chunk);
                    self.next = 0;
                    keep(&self.spare, used);
                    if !self.chunk.events.is_empty() {
                        return Ok(());
                    }
                }
                Next::EndOfPart => {
                    self.records = (self.records.0 + self.records.1, 0);
                    if self.begins.next().is_some_and(|begin| begin != self.end) {
                        return self.start_over(None);
                    }
                }
                Next::Failed(error) => return self.start_over(Some(error)),
                Next::End => self.chunks = None,
            }
        }
        Ok(())
    }

    /// Continues with a plain scan; without one, `error` is what there is to say.
    fn start_over(&mut self, error: Option<Error>) -> Result<()> {
        self.chunks = None;
        let Some(Origin { source, format, options }) = self.origin.take() else {
            return error.map_or(Ok(()), Err);
        };
        let mut scan = format.scan(Window::new(source).read_ahead(), &options)?;
        for _ in 0..self.given {
            scan.next_event()?;
        }
        self.plain = Some(scan);
        Ok(())
    }
}

impl Scan for ScanAhead {
    fn next_event(&mut self) -> Result<Event<'_>> {
        if self.plain.is_none() && self.next >= self.chunk.events.len() {
            self.refill()?;
        }
        if let Some(plain) = &mut self.plain {
            return plain.next_event();
        }
        let Some(stored) = self.chunk.events.get_mut(self.next) else { return Ok(Event::End) };
        self.next += 1;
        self.given += 1;
        Ok(match stored {
            Stored::Record { position, span, integrity, data } => {
                self.records.1 += 1;
                self.end = self.end.max(span.end);
                let data = self.chunk.data.get(data.clone()).unwrap_or_default();
                let (position, integrity) = (*position, *integrity);
                Event::Record(ScannedRecord { position, span: span.clone(), integrity, data })
            }
            Stored::Other(event) => match std::mem::replace(event, Event::End) {
                Event::Damage(damage) => {
                    self.end = self.end.max(damage.end);
                    Event::Damage(Damage { record: damage.record + self.records.0, ..damage })
                }
                Event::Metadata(metadata) => {
                    self.end = self.end.max(metadata.span.end);
                    Event::Metadata(metadata)
                }
                other => other,
            },
        })
    }

    fn fill(&mut self, batch: &mut Batch, records: usize, bytes: usize) -> Result<()> {
        if let Some(plain) = &mut self.plain {
            return plain.fill(batch, records, bytes);
        }
        let mut size = batch.buffer().len();
        while batch.len() < records
            && size < bytes
            && let Some(Stored::Record { span, data, .. }) = self.chunk.events.get(self.next)
        {
            let record = self.chunk.data.get(data.clone()).unwrap_or_default();
            batch.try_push(record)?;
            size += record.len();
            self.next += 1;
            self.given += 1;
            self.records.1 += 1;
            self.end = self.end.max(span.end);
        }
        Ok(())
    }
}

/// Gives all events of a scan to the consumer, in chunks.
fn hand_over(scan: &mut dyn Scan, spare: &Spare, emit: &mut dyn FnMut(Chunk) -> bool) -> Result<()> {
    let mut chunk = empty(spare);
    loop {
        let stored = match scan.next_event() {
            Ok(Event::Record(ScannedRecord { position, span, integrity, data })) => {
                let begin = chunk.data.len();
                reserve(&mut chunk.data, data.len())?;
                chunk.data.extend_from_slice(data);
                Stored::Record { position, span, integrity, data: begin..chunk.data.len() }
            }
            Ok(Event::Metadata(metadata)) => Stored::Other(Event::Metadata(metadata)),
            Ok(Event::Damage(damage)) => Stored::Other(Event::Damage(damage)),
            Ok(Event::Notice(notice)) => Stored::Other(Event::Notice(notice)),
            // What came before it is handed over first.
            Ok(Event::End) => {
                emit(chunk);
                return Ok(());
            }
            Err(error) => return if emit(chunk) { Err(error) } else { Ok(()) },
        };
        chunk.events.push(stored);
        if chunk.data.len() >= CHUNK.0 || chunk.events.len() >= CHUNK.1 {
            let full = std::mem::replace(&mut chunk, empty(spare));
            if !emit(full) {
                return Ok(());
            }
        }
    }
}

fn empty(spare: &Spare) -> Chunk {
    spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

/// Keeps a chunk's memory for another one, unless a large record made it large.
fn keep(spare: &Spare, mut chunk: Chunk) {
    if (1..=2 * CHUNK.0).contains(&chunk.data.capacity()) {
        chunk.data.clear();
        chunk.events.clear();
        spare.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
    }
}

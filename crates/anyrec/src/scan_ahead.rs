//! A scan that other threads run ahead of.
//!
//! Whoever takes records from a scan to write them somewhere else waits in turns for the reading
//! and for the writing. [`ScanAhead`] lets threads read: each takes the next part of the file
//! ([`Format::cut`]), scans it, and hands the events over in chunks; they come out in file order. A
//! file that cannot be cut is one part, read by one thread. What waits to be taken is bounded, so
//! memory does not grow with the file.
//!
//! The events are those of the plain scan. Where parts do not join, or one cannot be read to its
//! end, a plain scan starts over, passes by what was given already, and goes on from there.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::{Checksum, Damage, Event, Format, OpenOptions, Parts, Scan, ScannedRecord};
use crate::input::Input;
use crate::io::{ReadAt, Window};
use crate::position::Position;
use crate::room::reserve;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Bytes of file that a thread takes at a time; smaller files are scanned plainly.
const PART: u64 = 1 << 20;
/// Bytes of records, and number of events, that are handed over at a time.
const CHUNK: (usize, usize) = (1 << 20, 1 << 14);
/// Chunks of a part that may wait: about as much as a part holds.
const WAITING: usize = 4;
/// More threads than this outrun any writer, and each holds parts in memory.
const MOST_THREADS: usize = 8;

/// Starts a scan of an input on as many threads as `options` allow.
///
/// # Errors
/// As [`Format::scan`].
pub(crate) fn scan_ahead(input: Input, options: &OpenOptions) -> Result<Box<dyn Scan>> {
    scan_ahead_in_parts(input, options, PART)
}

/// [`scan_ahead`] in parts of about that many bytes.
///
/// # Errors
/// As [`Format::scan`].
pub(crate) fn scan_ahead_in_parts(input: Input, options: &OpenOptions, part: u64) -> Result<Box<dyn Scan>> {
    let input = input.read_ahead();
    let threads = options.thread_count().min(MOST_THREADS);
    if threads == 1 || input.length().is_some_and(|length| length <= part) {
        return input.scan(options);
    }
    let Some(source) = input.source().cloned() else {
        return ScanAhead::start(Work::Whole(Mutex::new(Some(input.scan(options)?))), 1, None);
    };
    let origin = Origin { source, format: input.format(), options: options.clone() };
    // Where a part needs more than its share, it fails, and a plain scan takes over.
    let shared = OpenOptions { limits: options.limits.shared_by(threads), ..options.clone() };
    match origin.format.cut(&origin.source, &shared, part)? {
        Some(parts) if parts.begins().len() > 1 => {
            ScanAhead::start(Work::Parts(parts), threads, Some(origin))
        }
        _ => ScanAhead::start(Work::Whole(Mutex::new(Some(input.scan(options)?))), 1, None),
    }
}

/// What the threads share.
struct Shared {
    work: Work,
    /// The next part to take, and where the receiver of its chunks goes. Under one lock, so that
    /// receivers arrive in order.
    next: Mutex<(usize, SyncSender<Receiver<Message>>)>,
    /// Used chunks, to be filled again.
    used: Mutex<Vec<Chunk>>,
}

enum Work {
    Parts(Box<dyn Parts>),
    /// Taken by the one thread.
    Whole(Mutex<Option<Box<dyn Scan>>>),
}

impl Work {
    /// The scan of a part; `None` past the last one.
    fn scan(&self, part: usize) -> Option<Result<Box<dyn Scan>>> {
        match self {
            Work::Parts(parts) => (part < parts.begins().len()).then(|| parts.scan(part)),
            Work::Whole(scan) => scan.lock().unwrap_or_else(PoisonError::into_inner).take().map(Ok),
        }
    }
}

enum Message {
    Chunk(Chunk),
    Failed(Error),
    /// The part's last event was handed over.
    End,
}

/// Some events, with the records' bytes back to back.
#[derive(Default)]
struct Chunk {
    data: Vec<u8>,
    events: Vec<Stored>,
}

enum Stored {
    Record { position: Position, span: Range<u64>, checksum: Checksum, data: Range<usize> },
    Other(Event<'static>),
}

/// What a plain scan would start from.
struct Origin {
    source: Arc<dyn ReadAt>,
    format: &'static dyn Format,
    options: OpenOptions,
}

struct ScanAhead {
    shared: Arc<Shared>,
    origin: Option<Origin>,
    /// The parts' receivers, in order; gone when nothing more is wanted from the threads.
    parts: Option<Receiver<Receiver<Message>>>,
    /// The part that events come from, and its number.
    current: Option<(usize, Receiver<Message>)>,
    chunk: Chunk,
    /// The next event of `chunk`.
    next: usize,
    /// Events given so far, to be passed by if a plain scan must take over.
    given: u64,
    /// Records in the parts before the current one, and in this one so far.
    records: (u64, u64),
    /// Where the last event ended.
    end: u64,
    plain: Option<Box<dyn Scan>>,
    threads: Vec<JoinHandle<()>>,
    /// The process that has the threads.
    process: u32,
}

impl ScanAhead {
    fn start(work: Work, threads: usize, origin: Option<Origin>) -> Result<Box<dyn Scan>> {
        let (sender, parts) = sync_channel(threads);
        let shared = Arc::new(Shared { work, next: Mutex::new((0, sender)), used: Mutex::default() });
        let mut scan = ScanAhead {
            shared,
            origin,
            parts: Some(parts),
            current: None,
            chunk: Chunk::default(),
            next: 0,
            given: 0,
            records: (0, 0),
            end: 0,
            plain: None,
            threads: Vec::new(),
            process: crate::fork::generation(),
        };
        for _ in 0..threads {
            let shared = Arc::clone(&scan.shared);
            let thread = std::thread::Builder::new().name("anyrec-scan".to_owned());
            match thread.spawn(move || while shared.do_part() {}) {
                Ok(thread) => scan.threads.push(thread),
                // Those that could be started do it all; if there are none, the caller does.
                Err(_) if !scan.threads.is_empty() => break,
                Err(_) => match &scan.shared.work {
                    Work::Parts(_) => {
                        scan.start_over(None)?;
                        break;
                    }
                    Work::Whole(_) => return scan.shared.work.scan(0).unwrap_or(Ok(Box::new(scan))),
                },
            }
        }
        Ok(Box::new(scan))
    }

    /// Gets the next chunk, unless the end is reached or a plain scan takes over.
    fn refill(&mut self) -> Result<()> {
        if crate::fork::generation() != self.process {
            return self.start_over(Some(Error::invalid("a scan cannot go on in a forked process")));
        }
        loop {
            let Some((part, messages)) = &self.current else {
                let Some(messages) = self.parts.as_ref().and_then(|parts| parts.recv().ok()) else {
                    return Ok(());
                };
                self.current = Some((0, messages));
                continue;
            };
            let part = *part;
            match messages.recv() {
                Ok(Message::Chunk(chunk)) => {
                    let used = std::mem::replace(&mut self.chunk, chunk);
                    self.next = 0;
                    self.shared.keep(used);
                    if !self.chunk.events.is_empty() {
                        return Ok(());
                    }
                }
                Ok(Message::End) => match self.next_part(part + 1) {
                    Next::Part(messages) => self.current = Some((part + 1, messages)),
                    Next::None => {
                        self.stop();
                        return Ok(());
                    }
                    Next::Gap => return self.start_over(None),
                },
                Ok(Message::Failed(error)) => return self.start_over(Some(error)),
                // The thread panicked.
                Err(_) => {
                    return self.start_over(Some(Error::invalid("a thread that scans a file panicked")));
                }
            }
        }
    }

    fn next_part(&mut self, part: usize) -> Next {
        let Work::Parts(parts) = &self.shared.work else { return Next::None };
        match parts.begins().get(part) {
            None => Next::None,
            Some(&begin) if begin != self.end => Next::Gap,
            Some(_) => {
                self.records = (self.records.0 + self.records.1, 0);
                match self.parts.as_ref().and_then(|parts| parts.recv().ok()) {
                    Some(messages) => Next::Part(messages),
                    None => Next::Gap,
                }
            }
        }
    }

    /// Goes on with a plain scan; without one, `error` is what there is to say.
    fn start_over(&mut self, error: Option<Error>) -> Result<()> {
        self.stop();
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

    /// Lets go of the threads: what they would still send finds nobody.
    fn stop(&mut self) {
        self.parts = None;
        self.current = None;
    }
}

enum Next {
    Part(Receiver<Message>),
    None,
    /// The part before did not end where this one begins.
    Gap,
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
            Stored::Record { position, span, checksum, data } => {
                self.records.1 += 1;
                self.end = self.end.max(span.end);
                let data = self.chunk.data.get(data.clone()).unwrap_or_default();
                let (position, checksum) = (*position, *checksum);
                Event::Record(ScannedRecord { position, span: span.clone(), checksum, data })
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

impl Drop for ScanAhead {
    fn drop(&mut self) {
        self.stop();
        if crate::fork::generation() != self.process {
            // The threads are the parent's; here there are none to wait for.
            return self.threads.drain(..).for_each(std::mem::forget);
        }
        for thread in self.threads.drain(..) {
            // A panic in it was dealt with when its part did not end.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Takes the next part and hands its events over; false when there is nothing more to do.
    fn do_part(&self) -> bool {
        let (scan, sender) = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(scan) = self.work.scan(next.0) else { return false };
            next.0 += 1;
            let (sender, receiver) = sync_channel(WAITING);
            // Waits here while enough parts are under way, and so does who wants the lock.
            if next.1.send(receiver).is_err() {
                return false;
            }
            (scan, sender)
        };
        let last = match scan.and_then(|mut scan| self.hand_over(&mut *scan, &sender)) {
            Ok(true) => Message::End,
            Ok(false) => return false,
            Err(error) => Message::Failed(error),
        };
        sender.send(last).is_ok()
    }

    /// All events of a scan; false where nobody wants them any more.
    fn hand_over(&self, scan: &mut dyn Scan, sender: &SyncSender<Message>) -> Result<bool> {
        let mut chunk = self.chunk();
        loop {
            let event = scan.next_event();
            let stored = match event {
                Ok(Event::Record(ScannedRecord { position, span, checksum, data })) => {
                    let begin = chunk.data.len();
                    reserve(&mut chunk.data, data.len())?;
                    chunk.data.extend_from_slice(data);
                    Stored::Record { position, span, checksum, data: begin..chunk.data.len() }
                }
                Ok(Event::Metadata(metadata)) => Stored::Other(Event::Metadata(metadata)),
                Ok(Event::Damage(damage)) => Stored::Other(Event::Damage(damage)),
                Ok(Event::Notice(notice)) => Stored::Other(Event::Notice(notice)),
                // What came before it is handed over first.
                Ok(Event::End) => return Ok(sender.send(Message::Chunk(chunk)).is_ok()),
                Err(error) => {
                    return if sender.send(Message::Chunk(chunk)).is_ok() { Err(error) } else { Ok(false) };
                }
            };
            chunk.events.push(stored);
            if chunk.data.len() >= CHUNK.0 || chunk.events.len() >= CHUNK.1 {
                let full = std::mem::replace(&mut chunk, self.chunk());
                if sender.send(Message::Chunk(full)).is_err() {
                    return Ok(false);
                }
            }
        }
    }

    /// An empty chunk.
    fn chunk(&self) -> Chunk {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a chunk's memory for another one, unless a large record made it large.
    fn keep(&self, mut chunk: Chunk) {
        if (1..=2 * CHUNK.0).contains(&chunk.data.capacity()) {
            chunk.data.clear();
            chunk.events.clear();
            self.used.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        }
    }
}

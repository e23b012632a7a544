//! The one sequential parser.

use super::layout::{HEADER, Header, MAGIC};
use anyrec::format::{Content, Damage, Event, Integrity, Metadata, OpenOptions, Scan, ScannedRecord};
use anyrec::io::Window;
use anyrec::{Checksum, Limits, Position, Result};

pub struct ToyScan {
    window: Window,
    verify: bool,
    limits: Limits,
    records: u64,
    /// Bytes of the record given last: skipped before the next event.
    given: u64,
}

impl ToyScan {
    pub fn new(window: Window, options: &OpenOptions) -> Self {
        ToyScan { window, verify: options.verify, limits: options.limits.clone(), records: 0, given: 0 }
    }

    /// Where the records end for good: nothing marks the beginning of the next one.
    fn damaged(&mut self, reason: String) -> Result<Event<'static>> {
        let begin = self.window.offset();
        while self.window.skip(1 << 20)? > 0 {}
        Ok(Event::Damage(Damage::new(begin..self.window.offset(), self.records, reason)))
    }
}

impl Scan for ToyScan {
    fn next_event(&mut self) -> Result<Event<'_>> {
        self.window.skip(std::mem::take(&mut self.given))?;
        let begin = self.window.offset();
        if begin == 0 {
            if self.window.peek(MAGIC.len())? == MAGIC {
                self.window.skip(MAGIC.len() as u64)?;
                return Ok(Event::Metadata(Metadata::new(0..MAGIC.len() as u64, Content::Filler)));
            }
            return match self.window.peek(1)?.is_empty() {
                true => Ok(Event::End),
                false => self.damaged("the file does not begin with TOY1".to_owned()),
            };
        }
        let head = self.window.peek(HEADER)?;
        if head.is_empty() {
            return Ok(Event::End);
        }
        let Some(header) = Header::parse(head) else {
            return self.damaged("the file ends inside a record's header".to_owned());
        };
        let length = u64::from(header.length);
        if length > self.limits.record {
            return Err(Limits::exceeded("record length", length, self.limits.record).at(begin));
        }
        let size = HEADER + header.length as usize;
        if self.window.peek(size)?.len() < size {
            return self.damaged(format!("a record of {length} bytes reaches past the end of the file"));
        }
        let end = begin + size as u64;
        let holds = {
            let data = &self.window.peek(size)?[HEADER..];
            !self.verify || Checksum::Crc32c(header.checksum).holds_for(data)
        };
        if !holds {
            // The length was right as far as anybody can tell: the next record is where it says.
            self.window.skip(size as u64)?;
            return Ok(Event::Damage(Damage::new(begin..end, self.records, "the checksum does not hold")));
        }
        (self.given, self.records) = (size as u64, self.records + 1);
        let integrity = if self.verify { Integrity::Verified } else { Integrity::Unchecked };
        let data = &self.window.peek(size)?[HEADER..];
        Ok(Event::Record(ScannedRecord::new(Position::of_frame(begin), begin..end, integrity, data)))
    }
}

//! Records by number: a scan finds them, once.

use super::layout::{HEADER, Header};
use super::scan::ToyScan;
use anyrec::format::{Event, Format, Info, OpenOptions, RecordReader, Scan};
use anyrec::io::{Source, Window};
use anyrec::{Checksum, Error, Location, Plain, Position, PositionList, Result};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub struct Reader {
    source: Arc<dyn Source>,
    options: OpenOptions,
    positions: OnceLock<PositionList>,
}

impl Reader {
    pub fn new(source: Arc<dyn Source>, options: &OpenOptions) -> Self {
        Reader { source, options: options.clone(), positions: OnceLock::new() }
    }

    fn positions(&self) -> Result<&PositionList> {
        if let Some(positions) = self.positions.get() {
            return Ok(positions);
        }
        let mut positions = PositionList::new();
        let mut scan = ToyScan::new(Window::new(self.source.clone()), &self.options);
        loop {
            match scan.next_event()? {
                Event::Record(record) => positions.push(record.position)?,
                Event::Damage(damage) if !self.options.skip_damage => {
                    return Err(damage.into_error(self.source.name()));
                }
                Event::End => break,
                _ => {}
            }
        }
        Ok(self.positions.get_or_init(|| positions))
    }
}

impl RecordReader for Reader {
    fn format(&self) -> &'static dyn Format {
        &super::FORMAT
    }

    fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn info(&self) -> Result<Info> {
        Ok(Info::default())
    }

    fn count(&self) -> Result<u64> {
        match &self.options.positions {
            Some(positions) => Ok(positions.len()),
            None => Ok(self.positions()?.len()),
        }
    }

    fn locate(&self, index: u64) -> Result<Location> {
        let found = match &self.options.positions {
            Some(positions) => positions.get(index),
            None => self.positions()?.get(index),
        };
        let position = match found {
            Some(position) => position,
            None => return Err(Error::no_such_record(index, self.count()?).in_file(self.source.name())),
        };
        let begin = position.frame;
        let end = (begin + HEADER as u64).min(self.source.len());
        let header = Header::parse(&self.source.bytes(begin.min(end)..end)?)
            .ok_or_else(|| Error::corrupt("there is no record").in_file(self.source.name()).at(begin))?;
        let data = end..end + u64::from(header.length);
        let checksum = self.options.verify.then_some(Checksum::Crc32c(header.checksum));
        Ok(Location::plain(Position::of_frame(begin), Plain::new(data, checksum)))
    }

    fn decode<'a>(&self, index: u64, location: &Location, frame: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let checksum = location.plain.as_ref().and_then(|plain| plain.checksum);
        match checksum {
            Some(checksum) if !checksum.holds_for(frame) => Err(Error::corrupt("the checksum does not hold")
                .in_file(self.source.name())
                .at(location.position.frame)
                .in_record(index)),
            _ => Ok(Cow::Borrowed(frame)),
        }
    }
}

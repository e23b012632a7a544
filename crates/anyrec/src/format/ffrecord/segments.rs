//! Splits files at sample boundaries.
//!
//! Only if the table puts every sample after its predecessor and inside the file: then the scan
//! handles each sample independently of the others.

use super::layout::{HEADER, Table};
use super::scan::FfRecordScan;
use crate::base::Result;
use crate::format::{OpenOptions, Scan, Segments};
use crate::io::{Source, Window};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct FfRecordSegments {
    source: Arc<dyn Source>,
    options: OpenOptions,
    table: Table,
    /// First sample of each part.
    samples: Vec<u64>,
    begins: Vec<u64>,
}

impl FfRecordSegments {
    /// Parts of about `size` bytes; `None` if the table is not in order.
    pub(super) fn cut(source: &Arc<dyn Source>, options: &OpenOptions, size: u64) -> Result<Option<Self>> {
        let length = source.len();
        let header = source.bytes(0..length.min(HEADER))?;
        let Ok((_, table_length)) = Table::parse_header(&header) else { return Ok(None) };
        if table_length > length {
            return Ok(None);
        }
        let Ok(table) = Table::parse(source.view(0..table_length)?) else { return Ok(None) };
        let (mut samples, mut begins) = (vec![0], vec![0]);
        let (mut last, mut part) = (table_length, table_length);
        for index in 0..table.count() {
            let offset = table.offset(index).and_then(|offset| u64::try_from(offset).ok());
            let Some(offset) = offset.filter(|offset| (last..=length).contains(offset)) else {
                return Ok(None);
            };
            if offset - part >= size && index > 0 {
                samples.push(index);
                begins.push(offset);
                part = offset;
            }
            last = offset;
        }
        Ok(Some(FfRecordSegments {
            source: source.clone(),
            options: options.clone(),
            table,
            samples,
            begins,
        }))
    }
}

impl Segments for FfRecordSegments {
    fn begins(&self) -> &[u64] {
        &self.begins
    }

    fn scan(&self, part: usize) -> Result<Box<dyn Scan>> {
        let first = self.samples.get(part).copied().unwrap_or(u64::MAX);
        let end = self.samples.get(part + 1).copied().unwrap_or(u64::MAX);
        let begin = self.begins.get(part).copied().unwrap_or(u64::MAX);
        let window = Window::starting_at(self.source.clone(), begin);
        Ok(Box::new(match part {
            0 => FfRecordScan::new(window, &self.options).up_to(end),
            _ => FfRecordScan::part(window, &self.options, self.table.clone(), first..end),
        }))
    }
}

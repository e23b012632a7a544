//! Record sets built from others: a selection of one, or several combined.

use crate::base::{Error, Result};
use crate::engine::{Place, RecordSet};
use std::sync::Arc;

/// Some of the records of a set, in any order.
///
/// ```
/// # use std::sync::Arc;
/// # fn main() -> anyrec::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("three.ffr");
/// # let mut writer = anyrec::create(&path)?;
/// # for record in [&b"one"[..], b"two", b"three"] {
/// #     writer.append(record, &anyrec::Tags::none())?;
/// # }
/// # writer.finish()?;
/// use anyrec::{RecordSet, Selection};
///
/// let dataset = Arc::new(anyrec::open(&path)?);
/// let selection = Selection::new(dataset, vec![2, 0])?;
/// let selection: &dyn RecordSet = &selection;
/// assert_eq!(selection.read_batch(&[0], 1)?.get(0), Some(&b"three"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Selection {
    of: Arc<dyn RecordSet>,
    numbers: Arc<[u64]>,
}

impl Selection {
    /// Selects the records with these numbers.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a number that is not in the set.
    pub fn new(of: Arc<dyn RecordSet>, numbers: impl Into<Arc<[u64]>>) -> Result<Selection> {
        let (numbers, count) = (numbers.into(), of.count()?);
        match numbers.iter().find(|&&number| number >= count) {
            Some(&number) => Err(Error::no_such_record(number, count)),
            None => Ok(Selection { of, numbers }),
        }
    }
}

impl RecordSet for Selection {
    fn count(&self) -> Result<u64> {
        Ok(self.numbers.len() as u64)
    }

    fn find(&self, number: u64) -> Result<Place<'_>> {
        let chosen = usize::try_from(number).ok().and_then(|number| self.numbers.get(number));
        match chosen {
            Some(&chosen) => self.of.find(chosen),
            None => Err(Error::no_such_record(number, self.numbers.len() as u64)),
        }
    }

    fn memory_limit(&self) -> u64 {
        self.of.memory_limit()
    }
}

/// Several sets as one numbered sequence, which a mixture ([`Plan::mix`](crate::loader::Plan::mix))
/// reads from.
#[derive(Debug)]
pub struct Union {
    sets: Vec<Arc<dyn RecordSet>>,
    /// The number of each set's first record, followed by the total.
    starts: Vec<u64>,
}

impl Union {
    /// Combines the sets in this order.
    ///
    /// # Errors
    /// As [`RecordSet::count`].
    pub fn new(sets: Vec<Arc<dyn RecordSet>>) -> Result<Union> {
        let mut starts = vec![0u64];
        let mut total = 0u64;
        for set in &sets {
            total = total
                .checked_add(set.count()?)
                .ok_or_else(|| Error::invalid("there are 2^64 records or more"))?;
            starts.push(total);
        }
        Ok(Union { sets, starts })
    }
}

impl RecordSet for Union {
    fn count(&self) -> Result<u64> {
        Ok(self.starts.last().copied().unwrap_or(0))
    }

    fn find(&self, number: u64) -> Result<Place<'_>> {
        let set = self.starts.partition_point(|&start| start <= number).saturating_sub(1);
        match self.sets.get(set).zip(self.starts.get(set)) {
            Some((set, start)) => set.find(number - start),
            None => Err(Error::no_such_record(number, self.starts.last().copied().unwrap_or(0))),
        }
    }

    fn check_all(&self) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.check_all())
    }

    fn memory_limit(&self) -> u64 {
        self.sets.iter().map(|set| set.memory_limit()).min().unwrap_or(u64::MAX)
    }
}

//! Many records in one buffer.

/// Records back to back in one buffer, with the offsets between them (the layout Arrow calls
/// LargeBinary).
///
/// ```
/// let batch: anyrec::Batch = [&b"one"[..], b"", b"three"].into_iter().collect();
/// assert_eq!(batch.len(), 3);
/// assert_eq!(batch.get(2), Some(&b"three"[..]));
/// assert_eq!(batch.offsets(), [0, 3, 3, 8]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    buffer: Vec<u8>,
    /// One more than there are records; the first is 0, the last the buffer's length.
    offsets: Vec<u64>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { buffer: Vec::new(), offsets: vec![0] }
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record at the end.
    pub fn push(&mut self, record: &[u8]) {
        self.buffer.extend_from_slice(record);
        self.offsets.push(self.buffer.len() as u64);
    }

    /// Takes all records out; the memory stays for the next ones.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.offsets.truncate(1);
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Record `index` of the batch.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let begin = usize::try_from(*self.offsets.get(index)?).ok()?;
        let end = usize::try_from(*self.offsets.get(index + 1)?).ok()?;
        self.buffer.get(begin..end)
    }

    /// The records in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// All records' bytes, back to back.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The same, to be changed in place.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Where each record begins in the buffer, and, last, where the last one ends.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Buffer and offsets.
    pub fn into_parts(self) -> (Vec<u8>, Vec<u64>) {
        (self.buffer, self.offsets)
    }
}

impl<'a> FromIterator<&'a [u8]> for Batch {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(records: I) -> Self {
        let mut batch = Batch::new();
        for record in records {
            batch.push(record);
        }
        batch
    }
}

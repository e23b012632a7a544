//! Memory whose size depends on an image: running out is an error, never an abort.

use anyrec::{Error, Result};

/// Allocates zeroed memory.
///
/// # Errors
/// [`OutOfMemory`](anyrec::ErrorKind::OutOfMemory).
pub(crate) fn zeroed(size: usize) -> Result<Vec<u8>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(size).map_err(|_| Error::out_of_memory(size as u64))?;
    memory.resize(size, 0);
    Ok(memory)
}

/// Reserves space for more bytes, amortised like a vector's growth.
///
/// # Errors
/// [`OutOfMemory`](anyrec::ErrorKind::OutOfMemory).
pub(crate) fn reserve(vector: &mut Vec<u8>, more: usize) -> Result<()> {
    vector.try_reserve(more).map_err(|_| Error::out_of_memory(more as u64))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use anyrec::ErrorKind;

    #[test]
    fn memory_that_no_machine_has_is_an_error_of_its_own_kind() {
        let most = isize::MAX.unsigned_abs();
        assert_eq!(zeroed(most).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!(reserve(&mut vec![0], usize::MAX).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!(zeroed(3).unwrap(), [0; 3]);
    }
}

//! Memory whose size a file or a caller determines: running out is an error, never an abort.

use crate::base::{Error, Result};

/// From this size on, huge pages are requested. With small pages, each first write to 4 KiB would
/// be a page fault.
const LARGE: usize = 4 << 20;

/// Allocates zeroed memory.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub(crate) fn zeroed(size: usize) -> Result<Vec<u8>> {
    if size == 0 {
        return Ok(Vec::new());
    }
    let failed = || Error::out_of_memory(size as u64);
    let layout = std::alloc::Layout::array::<u8>(size).map_err(|_| failed())?;
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(failed());
    }
    // SAFETY: the memory was just allocated by the allocator that vectors use, for `size` bytes,
    // all of which are initialised.
    let memory = unsafe { Vec::from_raw_parts(memory, size, size) };
    #[cfg(target_os = "linux")]
    if size >= LARGE {
        let begin = memory.as_ptr().align_offset(4096);
        if let Some(pages) = memory.get(begin..) {
            // SAFETY: the pages belong to the vector. The advice has no observable effect and may
            // be refused.
            unsafe {
                libc::madvise(
                    pages.as_ptr().cast_mut().cast(),
                    pages.len() / 4096 * 4096,
                    libc::MADV_HUGEPAGE,
                )
            };
        }
    }
    Ok(memory)
}

/// Reserves space for more elements, amortised like a vector's growth.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
#[inline]
pub(crate) fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<()> {
    vector.try_reserve(more).map_err(|_| out_of_memory::<T>(more))
}

#[cold]
fn out_of_memory<T>(elements: usize) -> Error {
    Error::out_of_memory(elements.saturating_mul(size_of::<T>()) as u64)
}

/// Copies some bytes.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub(crate) fn copied(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| out_of_memory::<u8>(bytes.len()))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Checks that this many bytes could be allocated now, for work whose many small allocations cannot
/// fail one by one.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub(crate) fn check_available(bytes: usize) -> Result<()> {
    let mut probe = Vec::<u8>::new();
    let there = probe.try_reserve_exact(bytes).map_err(|_| out_of_memory::<u8>(bytes));
    // Prevents the compiler from removing the unused allocation.
    std::hint::black_box(&mut probe);
    there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn memory_that_no_machine_has_is_an_error_of_its_own_kind() {
        let kind = |outcome: Result<()>| outcome.unwrap_err().kind();
        let most = isize::MAX as usize;
        assert_eq!(kind(zeroed(most).map(drop)), ErrorKind::OutOfMemory);
        assert_eq!(kind(reserve(&mut vec![0u64], usize::MAX / 8)), ErrorKind::OutOfMemory);
        assert_eq!(kind(check_available(most)), ErrorKind::OutOfMemory);
        assert_eq!(zeroed(3).unwrap(), [0; 3]);
        assert_eq!(copied(b"abc").unwrap(), b"abc");
    }
}

//! Large memory to be filled.

/// From this size on the system is asked for large pages: with small ones it would be called for
/// every 4 KiB that are filled for the first time.
const LARGE: usize = 4 << 20;

/// Zeroed memory of that size; `None` where there is not enough.
pub(crate) fn room(size: usize) -> Option<Vec<u8>> {
    if size == 0 {
        return Some(Vec::new());
    }
    let layout = std::alloc::Layout::array::<u8>(size).ok()?;
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    // SAFETY: the memory was allocated just now by the allocator vectors use, for `size` bytes, all
    // of which are initialised.
    let memory = unsafe { Vec::from_raw_parts(memory, size, size) };
    #[cfg(target_os = "linux")]
    if size >= LARGE {
        let begin = memory.as_ptr().align_offset(4096);
        if let Some(pages) = memory.get(begin..) {
            // SAFETY: the pages are the vector's; the advice changes nothing that can be seen, and
            // may be refused.
            unsafe {
                libc::madvise(
                    pages.as_ptr().cast_mut().cast(),
                    pages.len() / 4096 * 4096,
                    libc::MADV_HUGEPAGE,
                )
            };
        }
    }
    Some(memory)
}

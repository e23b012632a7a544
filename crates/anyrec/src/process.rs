//! Which process this is, without asking the system each time.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

/// A number that changes in a child that this process forks: what belongs to one process (threads,
/// rings, open writers) remembers it.
pub fn generation() -> u32 {
    // SAFETY: the handler may run in a child of a process with threads: all it does is to add.
    WATCHED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(count_fork));
    });
    FORKS.load(Ordering::Relaxed)
}

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_has_another_number() {
        let before = generation();
        // SAFETY: the child calls nothing but what a forked child may call.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(generation() == before)) };
        }
        let mut status = 1;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((status, generation()), (0, before));
    }
}

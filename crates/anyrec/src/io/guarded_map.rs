//! A mapped file that another process may truncate without ending this one.
//!
//! Accessing a mapped page that the file no longer has, or that the disk cannot read, raises
//! SIGBUS, which ends the process. For the maps created here, a handler instead maps a page of
//! zeros in its place and marks the map as torn. Code that copied bytes out of a map checks
//! [`GuardedMap::is_torn`] *afterwards* and discards the copy if it is. Such zeros therefore never
//! leave this library as data, and memory of a guarded map is never returned to a caller.
//!
//! Any other SIGBUS is passed to the previous handler.

use bytes::Bytes;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// A read-only map of an entire file.
#[derive(Debug)]
pub(super) struct GuardedMap {
    bytes: Bytes,
    place: &'static Place,
}

/// The map itself, which may outlive the [`GuardedMap`].
struct Mapped {
    map: Mmap,
    place: &'static Place,
}

/// The address range of a map. The handler must not take a lock, so these are never freed, only
/// reused.
#[derive(Debug)]
struct Place {
    taken: AtomicBool,
    /// Addresses; both 0 while unused.
    begin: AtomicUsize,
    end: AtomicUsize,
    torn: AtomicBool,
    next: *const Place,
}

// SAFETY: `next` is set before the place is shared, and what it points to is never freed.
unsafe impl Send for Place {}
// SAFETY: as above; the rest is atomic.
unsafe impl Sync for Place {}

static PLACES: AtomicPtr<Place> = AtomicPtr::new(null_mut());

impl GuardedMap {
    /// Maps a file.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        guard()?;
        // SAFETY: the map is read-only. If another process changes the file, the bytes change under
        // us, which every parser here tolerates (all lengths are checked against the current
        // slice). If it truncates the file, the handler takes over.
        let map = unsafe { Mmap::map(file) }?;
        let place = Place::take();
        place.torn.store(false, Ordering::Relaxed);
        place.end.store(map.as_ptr() as usize + map.len(), Ordering::Release);
        place.begin.store(map.as_ptr() as usize, Ordering::Release);
        Ok(GuardedMap { bytes: Bytes::from_owner(Mapped { map, place }), place })
    }

    /// Whether some of the bytes read so far may be zeros that the file never had.
    pub(super) fn is_torn(&self) -> bool {
        self.place.torn.load(Ordering::Acquire)
    }
}

impl Deref for GuardedMap {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Before the addresses can be reused for anything else.
        self.place.begin.store(0, Ordering::Release);
        self.place.end.store(0, Ordering::Release);
        self.place.taken.store(false, Ordering::Release);
    }
}

impl Place {
    /// Takes an unused place.
    fn take() -> &'static Place {
        let free = all().find(|place| !place.taken.swap(true, Ordering::AcqRel));
        free.unwrap_or_else(|| {
            let mut first = PLACES.load(Ordering::Acquire);
            let made = Box::leak(Box::new(Place {
                taken: AtomicBool::new(true),
                begin: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                torn: AtomicBool::new(false),
                next: first,
            }));
            loop {
                made.next = first;
                match PLACES.compare_exchange_weak(first, made, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return made,
                    Err(other) => first = other,
                }
            }
        })
    }

    fn has(&self, address: usize) -> bool {
        let begin = self.begin.load(Ordering::Acquire);
        begin != 0 && (begin..self.end.load(Ordering::Acquire)).contains(&address)
    }
}

fn all() -> impl Iterator<Item = &'static Place> {
    let mut next: *const Place = PLACES.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null, or a place, which is never freed.
        let place = unsafe { next.as_ref() }?;
        next = place.next;
        Some(place)
    })
}

/// The previous handler, whether it is running, and the page size.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());
static IS_CALLED: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler, unless it is the current one. Call this again before accessing maps: other
/// libraries install their own handlers, or restore previous ones (Python's `faulthandler` does
/// both).
pub(super) fn guard() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: all zeros is a valid value, to be filled in.
    let mut present: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: this only queries the current handler.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut present) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if present.sa_sigaction == handler as usize {
        return Ok(());
    }
    // SAFETY: this only queries a system constant.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
    if !page.is_power_of_two() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    PAGE.store(page, Ordering::Release);
    // Never freed, because the handler may be reading it. This happens only a few times.
    BEFORE.store(Box::into_raw(Box::new(present)), Ordering::Release);
    // SAFETY: as above.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handler as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler uses only atomic loads and stores, `mmap`, `sigaction` and `raise`, which
    // are allowed in a handler. It calls the previous handler for faults that are not ours.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the operating system passes a valid description of the signal.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Codes from 1 on are faults. Others are signals sent by a process, without an address.
    if code > 0 && mend(address) {
        return;
    }
    // SAFETY: null, or what `guard` stored, which is never freed.
    let before = unsafe { BEFORE.load(Ordering::Acquire).as_ref() };
    match before {
        // The previous handler may have been installed after ours and then displaced by it again. Then
        // it may call ours in turn, so do not recurse.
        Some(before)
            if before.sa_sigaction != libc::SIG_DFL
                && before.sa_sigaction != libc::SIG_IGN
                && !IS_CALLED.swap(true, Ordering::AcqRel) =>
        {
            // SAFETY: this handler was installed, and takes one or three arguments according to its
            // flags.
            unsafe {
                if before.sa_flags & libc::SA_SIGINFO == 0 {
                    std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(before.sa_sigaction)(signal);
                } else {
                    type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    std::mem::transmute::<usize, Full>(before.sa_sigaction)(signal, info, context);
                }
            }
            IS_CALLED.store(false, Ordering::Release);
        }
        _ => {
            // SAFETY: all zeros is the default action; the fault occurs again and ends the process.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, null_mut());
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
    }
}

/// Maps a page of zeros at an address within one of our maps; returns false if it is in none.
fn mend(address: usize) -> bool {
    let Some(place) = all().find(|place| place.has(address)) else { return false };
    let page = PAGE.load(Ordering::Acquire);
    // Before any thread can see the zeros.
    place.torn.store(true, Ordering::SeqCst);
    let begin = (address & !(page - 1)) as *mut libc::c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the page is in the map that `place` describes. It cannot be unmapped now, because a
    // thread is accessing it. The page cannot be read, so nothing is lost.
    unsafe { libc::mmap(begin, page, libc::PROT_READ, flags, -1, 0) != libc::MAP_FAILED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_short_reads_as_zeros_and_is_torn() {
        let file = tempfile::tempfile().unwrap();
        let size = 64 << 10;
        file.set_len(size).unwrap();
        let (map, other) = (GuardedMap::new(&file).unwrap(), GuardedMap::new(&file).unwrap());
        assert!(map.iter().all(|&byte| byte == 0) && !map.is_torn());
        file.set_len(10_000).unwrap();
        assert_eq!(map.len() as u64, size);
        assert!(map.iter().all(|&byte| byte == 0));
        assert!(map.is_torn() && !other.is_torn());
        drop(map);
        let again = GuardedMap::new(&file).unwrap();
        assert!(again.iter().all(|&byte| byte == 0) && !again.is_torn());
    }

    #[test]
    fn a_handler_that_another_library_took_out_is_put_back() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 10).unwrap();
        let map = GuardedMap::new(&file).unwrap();
        // SAFETY: the child only accesses the map and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: all zeros is the default action.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(libc::SIGBUS, &raw const default, null_mut());
            }
            let ready = guard().is_ok() && file.set_len(0).is_ok();
            let torn = ready && map.iter().all(|&byte| byte == 0) && map.is_torn();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!torn)) };
        }
        let mut status = 1;
        // SAFETY: waits for the child just created.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
    }

    #[test]
    fn a_fault_in_memory_of_others_ends_the_process_as_before() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 10).unwrap();
        let _guarded = GuardedMap::new(&file).unwrap();
        // SAFETY: read-only; truncated below on purpose, in a child.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        // SAFETY: the child only accesses the map and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let cut = file.set_len(0).is_ok();
            let seen = cut && std::hint::black_box(&map).iter().any(|&byte| std::hint::black_box(byte) == 1);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(seen)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child just created.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "{status}");
    }
}

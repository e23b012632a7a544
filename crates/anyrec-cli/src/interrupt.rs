//! Ctrl-C: leave nothing half-written behind.
//!
//! On most file systems a file under construction has no name, and it disappears with the process.
//! Where it has a name, and for our own temporary folders, the handler removes it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The exit code that a shell reports for a program ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Folders to remove on interrupt.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Installs a handler that cleans up before Ctrl-C or a termination request ends the process.
pub fn clean_up_on_interrupt() {
    // If the handler cannot be installed, the process still ends, only less tidily.
    let _ = ctrlc::set_handler(|| {
        anyrec::io::remove_partial_files();
        for folder in FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Other threads may still create files in it, so try a few times.
            let _ = (0..10).find(|_| std::fs::remove_dir_all(&folder).is_ok());
        }
        std::process::exit(INTERRUPTED);
    });
}

/// A folder that is removed when this is dropped, or on Ctrl-C.
pub struct TemporaryFolder(tempfile::TempDir);

impl TemporaryFolder {
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("anyrec-").tempdir()?;
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.path().to_owned());
        Ok(TemporaryFolder(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|folder| folder != self.0.path());
    }
}

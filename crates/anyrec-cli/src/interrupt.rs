//! Ctrl-C: nothing half-written stays behind.
//!
//! Files under construction have no name on most file systems, and are gone with the process. Where
//! they have one, and for folders of our own, somebody must remove them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Folders to remove.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Sees to it that Ctrl-C (and a request to terminate) cleans up before it ends the process.
pub fn clean_up_on_interrupt() {
    // Without a handler the process ends all the same, only less tidily.
    let _ = ctrlc::set_handler(|| {
        anyrec::io::remove_partial_files();
        for folder in FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Files may still be made in it meanwhile: a few attempts.
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

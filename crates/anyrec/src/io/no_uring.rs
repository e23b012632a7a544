//! Where there is no io_uring: another system than Linux, or a build without the feature `uring`.

use super::positional::Job;
use std::fs::File;
use std::io;

#[derive(Debug, Default)]
pub(super) struct Rings(());

impl Rings {
    /// `None`: the caller must read in another way.
    pub(super) fn read(&self, _: &File, _: &mut [Job<'_>]) -> Option<Result<(), (u64, io::Error)>> {
        None
    }
}

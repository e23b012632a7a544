//! The only place that creates threads.
//!
//! Everything here handles forks: a child process has none of its parent's threads and may find its
//! parent's locks held. A panic on a thread becomes an error for the caller that waits for it.

pub(crate) mod fork;
pub mod interrupt;
mod ordered;
mod pool;
mod spawn;

pub(crate) use ordered::{Next, Ordered};
pub(crate) use pool::{caught, each_on_a_thread, each_side_by_side, in_background};
pub(crate) use spawn::{Thread, spawn};

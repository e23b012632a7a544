//! Reads records from one or many files, by number or in order.

mod batch_pool;
mod by_number;
mod in_order;
mod record_set;

pub use batch_pool::BatchPool;
pub use by_number::read_batch;
pub(crate) use by_number::{Fetch, GROUP, OnBad};
pub use in_order::Records;
pub use record_set::{Place, RecordSet};
pub(crate) use record_set::{append, check_size, lend, locate, read_into};

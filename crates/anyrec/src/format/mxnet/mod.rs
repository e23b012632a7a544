//! MXNet RecordIO.

//! Every entry of `testdata/grail/good/manifest.json`.

//! Every entry of `testdata/ffrecord/good/manifest.json`.

//! Every entry of `testdata/mxnet/good/manifest.json`.

//! Every entry of `testdata/idx/good/manifest.json`.

//! Files that need a Cargo feature: with it they are read and written, without it the error names it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use anyrec::format::{OpenOptions, WriteOptions, by_id, grail};
use anyrec::{ErrorKind, Result, Tags};
use std::path::{Path, PathBuf};

const ZSTD: (&str, bool) = ("zstd", cfg!(feature = "zstd"));
const DEFLATE: (&str, bool) = ("deflate", cfg!(feature = "deflate"));
const ENCRYPTION: (&str, bool) = ("encryption", cfg!(feature = "encryption"));

/// Fails unless `outcome` is what this build must come to.
fn check<T>(outcome: Result<T>, (feature, on): (&str, bool), what: &Path) {
    match outcome {
        Ok(_) => assert!(on, "{what:?}: succeeds without {feature}"),
        Err(error) if on => panic!("{error:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
            let reason = format!("it was built without the feature `{feature}`");
            assert!(error.message().ends_with(&reason), "{error:?}");
        }
    }
}

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(file)
}

#[test]
fn file_that_needs_a_feature_is_read_or_the_feature_named() {
    for (file, feature) in [
        ("grail/good/v2_zstd.grail-rio", ZSTD),
        ("grail/good/v2_flate.grail-rio", DEFLATE),
        ("grail/good/legacy_packed_flate.grail-rpk-gz", DEFLATE),
        ("idx/good/train-images-idx3-ubyte.gz", DEFLATE),
        ("idx/good/cube-multimember-idx3-double.gz", DEFLATE),
    ] {
        let path = golden(file);
        let read = anyrec::open(&path).and_then(|dataset| dataset.read(0));
        check(read, feature, &path);
        // It is not damaged.
        check(anyrec::verify(&path, &OpenOptions::default()), feature, &path);
    }
}

#[test]
fn file_that_needs_a_feature_is_written_or_the_feature_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, format: &str, transformer: Option<&str>| {
        let mut options = WriteOptions::default();
        if let Some(transformer) = transformer {
            let registry = grail::Registry::default().with_key("key", [7; 32]);
            let own = grail::WriteOptions::default().with_transformer(transformer).with_registry(registry);
            options = options.with(own);
        }
        let mut writer = by_id(format).unwrap().create(&folder.path().join(name), &options)?;
        writer.append(b"record", &Tags::none())?;
        writer.finish()
    };
    for (name, format, transformer, feature) in [
        ("zstd.grail-rio", "grail", Some("zstd"), ZSTD),
        ("flate.grail-rio", "grail", Some("flate"), DEFLATE),
        ("secret.grail-rio", "grail", Some("aes-256-gcm key"), ENCRYPTION),
        ("x-idx1-ubyte.gz", "idx", None, DEFLATE),
    ] {
        check(write(name, format, transformer), feature, Path::new(name));
        assert_eq!(folder.path().join(name).exists(), feature.1, "{name}");
    }
}

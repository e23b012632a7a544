//! Tables: made by a scan, bound to the data file, refused when stale.

use crate::conformance::{golden_files, options_for, walk_file};
use anyrec::format::{FORMATS, OpenOptions};
use anyrec::{ErrorKind, IndexOptions, Indexed, Table};
use std::path::{Path, PathBuf};

/// Writes the table of a file.
fn index(data: &Path, options: &OpenOptions) -> anyrec::Result<Indexed> {
    let mut table = IndexOptions::default();
    table.open = options.clone();
    table.table = true;
    anyrec::index(data, &table, &mut |_| {})
}

fn copy(path: &Path, folder: &tempfile::TempDir) -> PathBuf {
    let target = folder.path().join(path.file_name().unwrap());
    std::fs::copy(path, &target).unwrap();
    target
}

#[test]
fn tables_of_all_goldens_hold_the_scans_positions() {
    for format in FORMATS {
        for path in golden_files(*format) {
            let folder = tempfile::tempdir().unwrap();
            let data = copy(&path, &folder);
            let mut options = options_for(&path);
            options.format = Some(*format);
            index(&data, &options).unwrap();
            let loaded = Table::load(&data).unwrap();
            let walked = walk_file(*format, &path);
            assert_eq!(loaded.positions().len(), walked.records.len() as u64);
            for (index, record) in walked.records.iter().enumerate() {
                assert_eq!(loaded.positions().get(index as u64), Some(record.position));
                let found = loaded.positions().index_of(record.position).unwrap();
                assert_eq!(loaded.positions().get(found), Some(record.position));
            }
            let dataset = anyrec::Dataset::open(&[&data], &options).unwrap();
            assert_eq!(dataset.len().unwrap(), walked.records.len() as u64);
        }
    }
}

#[test]
fn a_table_of_other_content_is_stale_and_the_file_still_opens() {
    let folder = tempfile::tempdir().unwrap();
    let data = copy(&crate::manifest::golden("mxnet").join("mod4.rec"), &folder);
    index(&data, &OpenOptions::default()).unwrap();
    let original = std::fs::read(&data).unwrap();

    let mut longer = original.clone();
    longer.extend_from_slice(&original);
    std::fs::write(&data, &longer).unwrap();
    assert_eq!(Table::load(&data).unwrap_err().kind(), ErrorKind::Stale);
    let dataset = anyrec::open(&data).unwrap();
    assert_eq!(
        dataset.len().unwrap(),
        2 * anyrec::open(crate::manifest::golden("mxnet").join("mod4.rec")).unwrap().len().unwrap()
    );
    assert_eq!(dataset.notices().unwrap().len(), 1);

    // Same length, one byte of a payload changed, another modification time.
    let mut changed = original.clone();
    changed[20] ^= 1;
    std::fs::write(&data, &changed).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::options().write(true).open(&data).unwrap().set_modified(later).unwrap();
    assert_eq!(Table::load(&data).unwrap_err().kind(), ErrorKind::Stale);

    // The same content under another time is the same content.
    std::fs::write(&data, &original).unwrap();
    std::fs::File::options().write(true).open(&data).unwrap().set_modified(later).unwrap();
    Table::load(&data).unwrap();
}

#[test]
fn a_damaged_table_is_refused_whatever_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let data = copy(&crate::manifest::golden("mxnet").join("magic.rec"), &folder);
    let path = index(&data, &OpenOptions::default()).unwrap().path;
    let good = std::fs::read(&path).unwrap();
    for length in 0..good.len() {
        std::fs::write(&path, &good[..length]).unwrap();
        assert_eq!(Table::load(&data).unwrap_err().kind(), ErrorKind::Corrupt, "cut at {length}");
    }
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bad).unwrap();
        assert_eq!(Table::load(&data).unwrap_err().kind(), ErrorKind::Corrupt, "bit {bit}");
    }
}

#[test]
fn a_damaged_file_gets_a_table_only_when_damage_may_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let data = copy(&crate::manifest::golden("mxnet").join("mod4.rec"), &folder);
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let mut options = options_for(&data);
    let error = index(&data, &options).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(0)));
    options.skip_damage = true;
    assert!(index(&data, &options).unwrap().records > 0);
}

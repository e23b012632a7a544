//! Properties of all files and all trees, not of particular ones.

use super::{memory, scan, write};
use anyrec::format::ffrecord::packed_folder::{ListOptions, pack_folder};
use anyrec::format::ffrecord::{PackedFolder, Reader};
use anyrec::format::{OpenOptions, RecordReader, WriteOptions};
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
        let mut options = WriteOptions::default();
        let data = write(&records, &options);
        options.count = Some(records.len() as u64);
        prop_assert_eq!(&write(&records, &options), &data);
        let reader = Reader::open(memory(&data), &OpenOptions::default()).unwrap();
        let read: Vec<Vec<u8>> = (0..reader.count()).map(|i| reader.read(i).unwrap().to_vec()).collect();
        prop_assert_eq!(&read, &records);
        let scanned = scan(&data, &OpenOptions::default());
        let scanned: Vec<Vec<u8>> = scanned.records.into_iter().map(|(_, data)| data).collect();
        prop_assert_eq!(&scanned, &records);
    }

    #[test]
    fn any_bytes_scan_without_losing_one(
        count in 0u64..6,
        offsets in prop::collection::vec(0u64..200, 6),
        rest in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        // A header that is plausible, offsets in any order: `scan` checks the coverage.
        let mut data = vec![1, 2, 3, 4];
        data.extend(count.to_le_bytes());
        for _ in 0..count {
            data.extend([0; 4]);
        }
        for offset in offsets.iter().take(usize::try_from(count).unwrap()) {
            data.extend(offset.to_le_bytes());
        }
        data.extend(rest);
        for verify in [true, false] {
            let length = data.len() as u64;
            super::scan_window(anyrec::io::Window::new(memory(&data)), &super::verifying(verify), length);
            let stream = anyrec::io::Window::from_stream("stream", std::io::Cursor::new(data.clone()));
            super::scan_window(stream, &super::verifying(verify), length);
        }
    }

    #[test]
    fn folders_survive_packing_and_unpacking(
        files in prop::collection::btree_map("[a-c]/[a-c]{1,2}|[x-zé]{1,3}", prop::collection::vec(any::<u8>(), 0..20), 0..12),
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        for (path, content) in &files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let packed = temporary.path().join("packed.ffr");
        pack_folder(&folder, &packed, &WriteOptions::default(), &mut |_| {}).unwrap();
        let source = anyrec::io::open_file(&packed, anyrec::io::Access::Auto).unwrap();
        let packed = PackedFolder::open(source, &OpenOptions::default()).unwrap();
        let target = temporary.path().join("target");
        let unpacked = packed.unpack(&target, &Default::default()).unwrap();
        prop_assert_eq!(unpacked.files, files.len() as u64);
        let mut all = ListOptions::default();
        all.recursive = true;
        all.folders = false;
        let read: BTreeMap<String, Vec<u8>> = packed.list("", &all).unwrap().into_iter().map(|path| {
            let content = std::fs::read(target.join(path.to_string())).unwrap();
            (path.to_string(), content)
        }).collect();
        prop_assert_eq!(read, files);
    }
}

//! Repair keeps exactly the intact records and accounts for every byte.

use crate::conformance::{golden_files, options_for};
use anyrec::format::ffrecord::PackedFolder;
use anyrec::format::{Content, FORMATS, Format};
use anyrec::io::{Access, Window, open_file};
use anyrec::testkit::{Walk, walk};
use anyrec::{ErrorKind, RepairOptions};
use std::path::Path;

fn walk_path(format: &dyn Format, path: &Path) -> Walk {
    walk(format, Window::new(open_file(path, Access::Auto).unwrap()), &options_for(path)).unwrap()
}

/// Repairs `data` and holds the result to every promise. Says whether there was damage.
fn check_repair(format: &'static dyn Format, name: &str, data: &[u8], what: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (input, output, again) = (
        folder.path().join(name),
        folder.path().join(format!("fixed {name}")),
        folder.path().join(format!("again {name}")),
    );
    std::fs::write(&input, data).unwrap();
    let mut options = options_for(&input);
    options.format = Some(format);
    let damaged = walk_path(format, &input);
    let mut settings = RepairOptions::default();
    settings.open = options.clone();
    let repair = anyrec::repair(&input, &output, &settings, &mut |_| {});
    let repair = match repair {
        Ok(repair) => repair,
        // Without its header an IDX file has no records, so there is nothing to keep.
        Err(error) if format.id() == "idx" && damaged.records.is_empty() => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            assert!(
                !damaged.contents.iter().any(|content| matches!(content, Content::Shape { .. })),
                "{what}"
            );
            assert!(!output.exists());
            return true;
        }
        Err(error) => panic!("{name} {what}: {error:?}"),
    };
    let report = &repair.report;
    assert_eq!(
        report.record_bytes + report.metadata_bytes + report.damage_bytes,
        data.len() as u64,
        "{name} {what}"
    );
    assert_eq!(report.damage, damaged.damage, "{name} {what}");
    assert_eq!(std::fs::read(&input).unwrap(), data, "the input was written");

    let fixed = walk_path(format, &output);
    assert_eq!(fixed.damage, [], "{name} {what}");
    assert_eq!(fixed.data(), damaged.data(), "{name} {what}");
    assert!(anyrec::verify(&output, &options).unwrap().is_sound());

    anyrec::repair(&input, &again, &settings, &mut |_| {}).unwrap();
    assert_eq!(
        std::fs::read(&output).unwrap(),
        std::fs::read(&again).unwrap(),
        "{name} {what}: a second repair differs"
    );
    let twice = folder.path().join(format!("twice {name}"));
    anyrec::repair(&output, &twice, &settings, &mut |_| {}).unwrap();
    assert_eq!(walk_path(format, &twice).data(), fixed.data(), "{name} {what}");
    !damaged.damage.is_empty()
}

#[test]
fn damaged_goldens_are_repaired_to_their_intact_records() {
    for format in FORMATS {
        let mut with_damage = 0;
        for path in golden_files(*format) {
            let data = std::fs::read(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            check_repair(*format, name, &data, "unharmed");
            if data.is_empty() || data.len() > 200_000 {
                continue;
            }
            let places =
                [0, 1, data.len() / 7, data.len() / 3, data.len() / 2, data.len() * 4 / 5, data.len() - 1];
            for at in places {
                let mut flipped = data.clone();
                flipped[at] ^= 0x55;
                with_damage +=
                    u32::from(check_repair(*format, name, &flipped, &format!("byte {at} changed")));
                with_damage += u32::from(check_repair(*format, name, &data[..at], &format!("cut at {at}")));
            }
            let mut hole = data.clone();
            let middle = data.len() / 2;
            hole[middle..(middle + 5000).min(data.len())].fill(0);
            with_damage += u32::from(check_repair(*format, name, &hole, "zeroed in the middle"));
        }
        assert!(with_damage > 50, "only {with_damage} damaged cases of {}", format.id());
    }
}

#[test]
fn a_repair_never_writes_over_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.rec");
    let data = std::fs::read(crate::manifest::golden("mxnet").join("magic.rec")).unwrap();
    std::fs::write(&path, &data).unwrap();
    let link = folder.path().join("link.rec");
    std::fs::hard_link(&path, &link).unwrap();
    for output in [&path, &link] {
        let mut settings = RepairOptions::default();
        settings.overwrite = true;
        let error = anyrec::repair(&path, output, &settings, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(std::fs::read(&path).unwrap(), data);
}

#[test]
fn a_packed_folder_that_lost_a_file_opens_again_once_its_tree_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let golden = crate::manifest::golden("ffrecord").join("packed_py311.ffr");
    let open = |path: &Path| PackedFolder::open(open_file(path, Access::Auto).unwrap(), &Default::default());
    let original = open(&golden).unwrap();
    let list = Default::default();
    let paths: Vec<_> =
        original.list("", &list).unwrap().into_iter().filter(|path| original.is_file(path)).collect();
    let lost = paths.iter().find(|path| !original.read_one(path).unwrap().is_empty()).unwrap();
    let damaged = folder.path().join("damaged.ffr");
    let mut data = std::fs::read(&golden).unwrap();
    let reader = original.reader();
    let at = reader.offsets().unwrap()[original.sample(lost).unwrap() as usize] as usize;
    data[at] ^= 1;
    std::fs::write(&damaged, &data).unwrap();

    let plain = folder.path().join("plain.ffr");
    let repair = anyrec::repair(&damaged, &plain, &RepairOptions::default(), &mut |_| {}).unwrap();
    assert!(repair.written.notices.iter().any(|notice| notice.hint == Some(anyrec::Hint::RewriteTree)));
    let error = open(&plain).unwrap_err();
    assert!(error.hint().unwrap().to_string().contains("rebuild_tree"), "{error:#}");

    let rebuilt = folder.path().join("rebuilt.ffr");
    let mut settings = RepairOptions::default();
    settings.rebuild_tree = true;
    anyrec::repair(&damaged, &rebuilt, &settings, &mut |_| {}).unwrap();
    let rebuilt = open(&rebuilt).unwrap();
    assert_eq!(rebuilt.num_files(), original.num_files() - 1);
    assert!(!rebuilt.exists(lost));
    for path in paths.iter().filter(|path| *path != lost) {
        assert_eq!(rebuilt.read_one(path).unwrap(), original.read_one(path).unwrap(), "{path}");
    }
}

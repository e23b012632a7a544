//! Repair keeps exactly the intact records and accounts for every byte.

use crate::conformance::{golden_files, options_for};
use anyrec::ErrorKind;
use anyrec::format::{Content, FORMATS, Format};
use anyrec::io::{Access, Window, open_file};
use anyrec::testkit::{Walk, walk};
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
    options.format = Some(format.id().to_owned());
    let damaged = walk_path(format, &input);
    let repair = anyrec::repair(&input, &output, &options, false, &mut |_| {});
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

    anyrec::repair(&input, &again, &options, false, &mut |_| {}).unwrap();
    assert_eq!(
        std::fs::read(&output).unwrap(),
        std::fs::read(&again).unwrap(),
        "{name} {what}: a second repair differs"
    );
    let twice = folder.path().join(format!("twice {name}"));
    anyrec::repair(&output, &twice, &options, false, &mut |_| {}).unwrap();
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
        let error = anyrec::repair(&path, output, &Default::default(), true, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(std::fs::read(&path).unwrap(), data);
}

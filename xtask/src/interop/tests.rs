//! The exchange with ourselves: our side of the check must accept what our writers write, and must
//! notice any change in a manifest.

use super::random::Random;
use super::report::Report;
use super::{Exchange, SEED, manifest, read_theirs, rewrite_theirs, write_ours};
use super::{grail::Grail, idx::Idx, mxnet::Mxnet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const FILES: u64 = 30;

/// Fields that may change without a difference: `kind` selects what to check, and two ways of
/// distributing records may give the same records.
const NOT_COMPARED: [&str; 5] = [".kind", ".shards.n", ".shards.start", ".shards.limit", ".shards.indexed"];

fn exchange_with_ourselves<X: Exchange>() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, scratch) = (folder.path().join("ours"), folder.path().join("rewritten"));
    for folder in [&ours, &scratch] {
        std::fs::create_dir(folder).unwrap();
    }
    let written = write_ours::<X>(&ours, SEED, FILES, &mut Report::default()).unwrap();
    manifest::save(&ours, &written).unwrap();
    let entries: Vec<X::Entry> = manifest::load(&ours).unwrap();

    let report = read_theirs::<X>(&ours, &entries);
    assert_eq!((report.files(), report.shown()), (FILES, &[][..]));
    let (report, settled) = rewrite_theirs::<X>(&ours, &entries, &scratch);
    assert_eq!((report.files(), report.shown()), (settled, &[][..]));
    assert!(settled > 0);

    let mut fields = BTreeMap::new();
    for (number, entry) in (0..).zip(&entries) {
        tamper_with_every_field::<X>(&ours, entry, &mut Random::new(SEED, number), &mut fields);
    }
    assert!(fields.len() > 5, "{fields:?}");
}

/// Changes one value of each field, wherever it occurs in lists, and expects it to be noticed.
fn tamper_with_every_field<X: Exchange>(
    folder: &Path,
    entry: &X::Entry,
    random: &mut Random,
    fields: &mut BTreeMap<String, u64>,
) {
    let sound = serde_json::to_value(entry).unwrap();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    collect_leaves(&sound, "", "", &mut places);
    for (field, places) in places.into_iter().filter(|(field, _)| !NOT_COMPARED.contains(&field.as_str())) {
        let place = &places[random.between(0..=places.len() - 1)];
        let mut tampered = sound.clone();
        tamper(tampered.pointer_mut(place).unwrap());
        *fields.entry(field).or_default() += 1;
        // A manifest that cannot be parsed is noticed too.
        if let Ok(tampered) = serde_json::from_value::<X::Entry>(tampered) {
            let report = read_theirs::<X>(folder, &[tampered]);
            assert!(report.differences() > 0, "{}: {place} was changed", X::file(entry));
        }
    }
}

/// The values of each field; a field within a list is the same field for all items.
fn collect_leaves(value: &Value, pointer: &str, field: &str, places: &mut BTreeMap<String, Vec<String>>) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect_leaves(item, &format!("{pointer}/{number}"), field, places);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                collect_leaves(member, &format!("{pointer}/{name}"), &format!("{field}.{name}"), places);
            }
        }
        _ => places.entry(field.to_owned()).or_default().push(pointer.to_owned()),
    }
}

fn tamper(value: &mut Value) {
    *value = match &*value {
        Value::Bool(flag) => (!flag).into(),
        Value::Number(number) => number.as_u64().map_or(Value::Null, |number| number.wrapping_add(1).into()),
        Value::String(text) => match text.strip_suffix('1') {
            Some(rest) => format!("{rest}2").into(),
            None if text.is_empty() => "01".into(),
            None => format!("{}1", &text[..text.char_indices().last().unwrap().0]).into(),
        },
        other => other.clone(),
    };
}

#[test]
fn mxnet_files_of_ours_are_accepted_and_every_tampered_field_is_noticed() {
    exchange_with_ourselves::<Mxnet>();
}

#[test]
fn grail_files_of_ours_are_accepted_and_every_tampered_field_is_noticed() {
    exchange_with_ourselves::<Grail>();
}

#[test]
fn idx_files_of_ours_are_accepted_and_every_tampered_field_is_noticed() {
    exchange_with_ourselves::<Idx>();
}

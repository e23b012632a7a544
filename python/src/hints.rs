//! The wording of hints for Python: functions and keyword arguments.

use anyrec::Hint;
use anyrec::hint::REBUILT_KEYS;
use pyo3::prelude::*;

/// What to call, for a hint from the library.
pub fn words(hint: &Hint) -> String {
    match hint {
        Hint::Damaged { .. } => "anyrec.verify() lists all damage, anyrec.repair() keeps the intact records".to_owned(),
        Hint::Repair { records, .. } => format!("anyrec.repair() keeps the first {records} records"),
        Hint::Index { .. } => "anyrec.index() writes it again".to_owned(),
        Hint::RebuildKeys { .. } => format!("anyrec.index() {REBUILT_KEYS}"),
        Hint::IndexDamaged { .. } => {
            "skip_damage=True indexes the intact records; anyrec.repair() makes a sound file".to_owned()
        }
        Hint::Finish { file } => {
            format!("the command `anyrec finish` publishes the new files of {file:?}, which are complete")
        }
        Hint::RaiseLimit => {
            "raise the limit if the file is trusted: `max_record`, `max_frame`, `max_decompressed` or `max_memory`"
                .to_owned()
        }
        Hint::AllowOverwrite => "choose another name, or pass overwrite=True".to_owned(),
        Hint::NameFormat => {
            "pass format=... if you know it; the file may be damaged at its beginning".to_owned()
        }
        Hint::EscapeNames => "such names cannot be unpacked as they are; read the files one by one".to_owned(),
        Hint::RebuildTree => {
            "if this file was repaired: anyrec.repair(..., rebuild_tree=True) makes a tree that fits".to_owned()
        }
        Hint::RewriteTree => "rebuild_tree=True rewrites it for the remaining files".to_owned(),
        Hint::PackImages => "write the images as the records of a file with anyrec.create()".to_owned(),
        Hint::WiderLabels => "choose a wider type for the label file with label_dtype=...".to_owned(),
        Hint::RegisterTransformer => "register it with anyrec.grail.register_transformer()".to_owned(),
        Hint::ConvertLabels => "name their file with labels=...".to_owned(),
        Hint::ReadWholeRecords => {
            "read whole records: payload=False, and no labels=True".to_owned()
        }
        Hint::GiveKey => "pass keys={id: key}: keys are not stored in files".to_owned(),
        other => other.to_string(),
    }
}

/// The wording of one hint of each kind, for the tests.
#[pyfunction]
pub fn hint_examples() -> Vec<String> {
    Hint::examples().iter().map(words).collect()
}

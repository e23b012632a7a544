//! The demonstration.

use crate::session::{Session, names_in, text};

#[test]
fn demonstration_matches_everything_and_tells_it_in_a_table() {
    let mut session = Session::new();
    let output = session.command(&["demo", "--pictures", "200", "--keep", "kept"]).output().unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    for step in ["draw", "write", "verify", "convert", "damage", "repair", "load"] {
        assert!(shown.lines().any(|line| line.trim_start().starts_with(step)), "{step} is missing:\n{shown}");
    }
    for word in ["circle-3-idx4-ubyte", "same records, and the same file", "Everything matched", "196"] {
        assert!(shown.contains(word), "{word} is missing:\n{shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 120), "{shown}");
    let files = names_in(&session.path("kept"));
    assert!(
        files.contains(&"photos.idx".to_owned()) && files.contains(&"repaired.ffr".to_owned()),
        "{files:?}"
    );
    // What the pictures weigh depends on the machine's arithmetic; what they are does not.
    for (line, words) in [
        ("info kept/photos.rec", "200 records labelled, 8 classes"),
        ("ls kept/photos.rec 199", "jpeg 64x64"),
        ("info kept/pictures-idx4-ubyte", "uint8 [200, 64, 64, 3]"),
        ("info kept/labels-idx1-ubyte", "uint8 [200]"),
    ] {
        let shown = text(&session.run(line).stdout);
        assert!(shown.contains(words), "{line}: {shown}");
    }
    let again = session.run("demo --keep kept");
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(text(&again.stderr), "error: kept is not empty: name a new folder\n");
}

#[test]
fn demonstration_leaves_no_files_unless_asked() {
    let session = Session::new();
    let temporary = session.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let output = session.command(&["demo", "--pictures", "100"]).env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(names_in(&temporary), [""; 0]);
    assert_eq!(session.files(), ["temporary"]);
}

//! What a name that is written to stands for: files are replaced, devices and pipes written to,
//! anything else refused.

use anyrec::ErrorKind;
use anyrec::Tags;
use anyrec::format::{FORMATS, Format, WriteOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

fn overwriting() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.overwrite = true;
    options
}

fn write(format: &dyn Format, path: &Path) -> anyrec::Result<()> {
    let mut writer = format.create(path, &overwriting())?;
    writer.append(b"a record", &Tags::none())?;
    writer.append(b"a record", &Tags::none())?;
    writer.finish().map(drop)
}

fn make_pipe(path: &Path) {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name ends in a zero byte and lives through the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

#[test]
fn formats_that_can_be_streamed_are_written_to_a_pipe_which_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["mxnet", "grail"] {
        let format = anyrec::format::by_id(id).unwrap();
        let (pipe, file) =
            (folder.path().join(format!("{id} pipe")), folder.path().join(format!("{id} file")));
        make_pipe(&pipe);
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        write(format, &pipe).unwrap();
        write(format, &file).unwrap();
        assert_eq!(reader.join().unwrap(), std::fs::read(&file).unwrap(), "{id}");
        assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{id}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn formats_that_cannot_be_streamed_refuse_a_pipe_and_all_refuse_a_folder_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    for id in ["ffrecord", "idx"] {
        let refused = anyrec::format::by_id(id).unwrap().create(&pipe, &overwriting()).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{id}: {refused}");
        assert!(refused.to_string().contains("cannot be written as a stream"), "{refused}");
    }
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    for format in FORMATS {
        let refused = format.create(folder.path(), &overwriting()).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("is a folder"), "{refused}");
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error_and_no_hang() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    let refused = write(anyrec::format::by_id("mxnet").unwrap(), &pipe).unwrap_err();
    assert!(refused.to_string().contains("no process reads from"), "{refused}");
}

#[test]
fn the_new_file_has_the_mode_and_owner_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for mode in [0o600, 0o640, 0o444, 0o777] {
            let path = folder.path().join(format!("{}-{mode:o}", format.id()));
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            // Only the administrator may give files away.
            let given_away = std::os::unix::fs::chown(&path, Some(12345), Some(12345)).is_ok();
            write(*format, &path).unwrap();
            let found = std::fs::metadata(&path).unwrap();
            assert_eq!(found.mode() & 0o7777, mode, "{path:?}");
            if given_away {
                assert_eq!((found.uid(), found.gid()), (12345, 12345), "{path:?}");
            }
        }
    }
}

#[test]
fn behind_a_link_the_target_is_replaced_or_made_and_the_link_stays() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let format = anyrec::format::by_id("ffrecord").unwrap();
    std::fs::write(elsewhere.join("old"), "old").unwrap();
    for name in ["old", "none yet"] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(Path::new("elsewhere").join(name), &link).unwrap();
        write(format, &link).unwrap();
        assert!(link.is_symlink(), "{name}");
        assert_eq!(anyrec::open(elsewhere.join(name)).unwrap().len().unwrap(), 2);
    }
    // A link to itself leads nowhere.
    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    assert_eq!(format.create(&circle, &overwriting()).err().unwrap().kind(), ErrorKind::Io);
}

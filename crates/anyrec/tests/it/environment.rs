//! What goes wrong around a file: pipes in its place, no threads to be had, another process that cuts
//! it short while it is read.

use anyrec::Tags;
use anyrec::format::{FORMATS, OpenOptions};
use anyrec::io::Access;
use anyrec::loader::{Loader, LoaderOptions, Plan, PlanOptions};
use anyrec::{Dataset, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const RECORDS: u64 = 3000;

/// Records of one size, none of whose bytes is zero: what a page that is not there would hold.
fn record(number: u64) -> Vec<u8> {
    let mut record = vec![7; 1000];
    record[..8].copy_from_slice(&(number | 1 << 60).to_le_bytes());
    record
}

/// A file of about 3 MB, which every way of reading it takes in several pieces.
fn write(folder: &Path, extension: &str) -> PathBuf {
    let path = folder.join(format!("a file.{extension}"));
    let mut writer = anyrec::format::by_name(&path).unwrap().create(&path, &Default::default()).unwrap();
    for number in 0..RECORDS {
        writer.append(&record(number), &Tags::none()).unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.rec");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name is a string that ends in zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for access in [Access::Auto, Access::Mapped, Access::Positional] {
        let mut options = OpenOptions::default();
        options.access = access;
        let error = Dataset::open(&[&pipe], &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("is not a regular file"), "{error}");
    }
    assert_eq!(anyrec::verify(&pipe, &OpenOptions::default()).unwrap_err().kind(), ErrorKind::Invalid);
    // A companion that is none must not keep its file from being read.
    let path = write(folder.path(), "rec");
    let index = std::ffi::CString::new(path.with_extension("idx").to_str().unwrap()).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::mkfifo(index.as_ptr(), 0o600) }, 0);
    assert_eq!(anyrec::open(&path).and_then(|dataset| dataset.len()).unwrap(), RECORDS);
}

/// What is left of a child's work: it has no thread but its own and can start none.
fn without_threads(work: impl FnOnce() -> Result<(), String>) {
    // SAFETY: the child runs nothing but `work`, which prints nothing and takes no lock that a test's
    // thread could hold (that it does not is tested elsewhere), and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: plain system calls. Root may start any number of processes, others may not.
        let ready = unsafe {
            libc::setrlimit(libc::RLIMIT_NPROC, &raw const none) == 0
                && (libc::geteuid() != 0 || libc::setuid(65534) == 0)
        };
        let refused = std::thread::Builder::new().spawn(|| ()).is_err();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let code = match outcome {
            _ if !ready || !refused => 3,
            Ok(Ok(())) => 0,
            Ok(Err(message)) => {
                let message = format!("{message}\n");
                // SAFETY: writes the bytes of a string.
                unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
                1
            }
            Err(_) => 2,
        };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    let mut status = 1;
    // SAFETY: waits for the child just made.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "1: an error, 2: a panic, 3: threads could be started");
}

#[test]
fn everything_but_a_loader_works_where_no_thread_can_be_started() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let path = write(folder.path(), format.extensions()[0]);
        without_threads(|| {
            let text = |error: anyrec::Error| error.to_string();
            let mut options = OpenOptions::default();
            options.threads = 4;
            let report = anyrec::verify(&path, &options).map_err(text)?;
            let records = u64::try_from(Dataset::open(&[&path], &options).map_err(text)?.iter().count());
            if !report.is_sound() || report.records != RECORDS || records != Ok(RECORDS) {
                return Err(format!("verify found {} records, a scan {records:?}", report.records));
            }
            for access in [Access::Auto, Access::Positional] {
                options.access = access;
                let dataset = Arc::new(Dataset::open(&[&path], &options).map_err(text)?);
                let numbers: Vec<u64> = (0..RECORDS).rev().collect();
                let batch = dataset.read_batch(&numbers).map_err(text)?;
                if !batch.iter().zip(&numbers).all(|(found, &number)| found == record(number)) {
                    return Err(format!("{access:?}: a batch differs"));
                }
                let plan = Plan::new(RECORDS, &PlanOptions::default()).map_err(text)?;
                let mut loader = Loader::new(dataset, plan, LoaderOptions::default()).map_err(text)?;
                match loader.next_batch() {
                    Err(error) if error.kind() == ErrorKind::Io => {}
                    other => return Err(format!("a loader without threads gave {:?}", other.map(|_| ()))),
                }
            }
            let output = folder.path().join("copy.ffr");
            let input = anyrec::RecordFile::open(&path, &options).map_err(text)?;
            let to = anyrec::format::by_name(&output).unwrap();
            let converted =
                anyrec::convert::convert(vec![input], &output, to, &Default::default(), &mut |_| {});
            match converted {
                Ok(written) if written.records == RECORDS => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    }
}

/// Reads a file in some way until that fails.
type Road = fn(&Path, &OpenOptions) -> anyrec::Result<()>;

fn check(number: u64, found: &[u8]) {
    assert!(found == record(number), "record {number} is wrong");
}

const ROADS: [(&str, Road); 5] = [
    ("single", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        (0..RECORDS).rev().try_for_each(|number| dataset.read(number).map(|found| check(number, &found)))
    }),
    ("batch", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        let numbers: Vec<u64> = (0..RECORDS).rev().collect();
        for numbers in numbers.chunks(100) {
            let batch = dataset.read_batch(numbers)?;
            numbers.iter().zip(batch.iter()).for_each(|(&number, found)| check(number, found));
        }
        Ok(())
    }),
    ("scan", |path, options| {
        let dataset = Dataset::open(&[path], options)?;
        (0..).zip(dataset.iter()).try_for_each(|(number, found)| found.map(|found| check(number, &found)))
    }),
    ("verify", |path, options| {
        let report = anyrec::verify(path, options)?;
        // Damage is what the file had when it was opened, not what became of it since.
        assert!(report.is_sound() || report.bytes < 3_000_000, "{report:?}");
        Ok(())
    }),
    ("loader", |path, options| {
        let dataset = Arc::new(Dataset::open(&[path], options)?);
        let plan = Plan::new(dataset.len()?, &PlanOptions::default())?;
        let mut settings = LoaderOptions::default();
        settings.threads = 2;
        let mut loader = Loader::new(dataset, plan, settings)?;
        while let Some(batch) = loader.next_batch()? {
            batch.indices.iter().zip(batch.records.iter()).for_each(|(&number, found)| check(number, found));
        }
        Ok(())
    }),
];

/// Nothing but errors, whenever the cut comes; a process that dies of SIGBUS fails this test.
#[test]
fn a_file_that_is_cut_short_while_it_is_read_is_an_error_in_every_way_of_reading() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), format.extensions()[0]);
        let whole = std::fs::read(&path).unwrap();
        let (mut random, mut failed) = (1u64, 0);
        for access in [Access::Auto, Access::Mapped, Access::Positional] {
            let mut options = OpenOptions::default();
            (options.access, options.threads) = (access, 2);
            for (name, road) in ROADS {
                for attempt in 0..10 {
                    std::fs::write(&path, &whole).unwrap();
                    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                    // Anywhere in the file, within a page too, and after more or less of it was read.
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let cut = (random >> 33) % whole.len() as u64;
                    let outcome = std::thread::scope(|scope| {
                        scope.spawn(|| {
                            std::thread::sleep(Duration::from_micros(attempt * 200));
                            file.set_len(cut).unwrap();
                        });
                        road(&path, &options)
                    });
                    failed += u64::from(outcome.is_err());
                    if let Err(error) = outcome {
                        let known = [ErrorKind::Corrupt, ErrorKind::Io, ErrorKind::Unsupported];
                        assert!(known.contains(&error.kind()), "{name} {access:?}: {error:?}");
                    }
                }
            }
        }
        // How many depends on the machine; all of them cannot have been too late.
        assert!(failed > 10, "{}: only {failed} of 150 failed", format.id());
    }
}

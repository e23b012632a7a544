//! Running out of memory is an error of its own: never damage, never fewer records, never an abort.

use crate::session::Session;
use anyrec::Tags;
use anyrec::format::{WriteOptions, by_id, grail};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// Bytes of a record of the files below.
const RECORD: usize = 6 << 20;

/// The command, in an address space of so many bytes.
fn limited(mut command: Command, bytes: u64) -> Output {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    let set = move || {
        // SAFETY: the limit is readable for the call's duration.
        match unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure calls `setrlimit` and nothing else, which is allowed after a fork.
    unsafe { command.pre_exec(set) };
    command.output().unwrap()
}

/// Files of every format and compression, with large records that are sound.
fn write_files(session: &Session) -> Vec<&'static str> {
    // Compressible, and with the magic number of MXNet in it, so that its records have parts.
    let record = |seed: u32| -> Vec<u8> {
        let mut data: Vec<u8> = (0u32..)
            .take(RECORD / 4)
            .flat_map(|i| ((i / 7).wrapping_mul(seed | 1) >> 24).to_le_bytes())
            .collect();
        data[RECORD / 2..RECORD / 2 + 4].copy_from_slice(&0xced7_230a_u32.to_le_bytes());
        data
    };
    let transformed = |name: &str| grail::WriteOptions::default().with_transformer(name).with_max_items(2);
    let legacy = transformed("flate").with_version(grail::Version::LegacyPacked);
    let plain = WriteOptions::default;
    let files = [
        ("plain.rec", "mxnet", plain()),
        ("plain.ffr", "ffrecord", plain()),
        ("plain.grail-rio", "grail", plain()),
        ("zstd.grail-rio", "grail", plain().with(transformed("zstd 1"))),
        ("flate.grail-rio", "grail", plain().with(transformed("flate 1"))),
        ("legacy.grail-rpk-gz", "grail", plain().with(legacy)),
        ("plain-idx2-ubyte", "idx", plain()),
        ("gzip-idx2-ubyte.gz", "idx", plain()),
    ];
    let mut names = Vec::new();
    for (name, format, options) in files {
        let mut writer = by_id(format).unwrap().create(&session.path(name), &options).unwrap();
        for seed in 0..3 {
            writer.append(&record(seed * 77_777_777), &Tags::none()).unwrap();
        }
        writer.finish().unwrap();
        names.push(name);
    }
    names
}

/// Whether the output says that there was not enough memory, and nothing else.
fn says_out_of_memory(output: &Output) -> bool {
    let told = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let memory = ["out of memory", "cannot allocate memory", "cannot start a thread"];
    // A thread that cannot have a stack for its signals, or a list of its destructors, is ended by the
    // standard library or the C library, and the process with it, before any code of ours runs in it.
    let unborn = ["failed to allocate an alternative stack", "failed to register tls destructor"];
    let unborn = unborn.iter().any(|words| told.contains(words));
    unborn || output.status.code() == Some(2) && memory.iter().any(|words| told.contains(words))
}

#[test]
fn a_sound_file_under_a_memory_limit_is_read_wholly_or_refused() {
    let session = Session::new();
    let files = write_files(&session);
    // What the process itself takes, and all the data several times.
    let starts = |mib: &u64| limited(session.command(&["--version"]), mib << 20).status.success();
    let least = (1..256).find(starts).unwrap();
    let limits: Vec<u64> = (0..9).map(|step| least + 1 + step * step).collect();
    let mut refused = 0;
    for file in files {
        for command in [
            vec!["verify", file],
            vec!["cat", file, "1"],
            vec!["repair", file, "--force", "-o", "out"],
            vec!["convert", "--force", file, "out.ffr"],
            vec!["ls", "--sha256", file],
        ] {
            let written = command.last().filter(|name| name.starts_with("out"));
            let result = || written.map(|name| std::fs::read(session.path(name)).unwrap_or_default());
            let whole = session.command(&command).output().unwrap();
            assert!(whole.status.success(), "{command:?}: {whole:?}");
            let expected = (whole.stdout, result());
            for mib in &limits {
                if let Some(name) = written {
                    std::fs::remove_file(session.path(name)).unwrap();
                }
                let output = limited(session.command(&command), mib << 20);
                if output.status.success() {
                    assert!(
                        (&output.stdout, result()) == (&expected.0, expected.1.clone()),
                        "{command:?} {mib} MiB"
                    );
                } else {
                    refused += 1;
                    let told = String::from_utf8_lossy(&output.stderr);
                    assert!(says_out_of_memory(&output), "{command:?} {mib} MiB: {:?} {told}", output.status);
                    assert!(result().is_none_or(|bytes| bytes.is_empty()), "{command:?} left its output");
                    if let Some(name) = written {
                        session.write(name, "");
                    }
                }
            }
        }
    }
    assert!(refused > 40, "only {refused} runs were short of memory: the limits are too high");
}

#[test]
fn limits_can_be_set_and_are_no_damage() {
    let session = Session::new();
    let files = write_files(&session);
    for file in files {
        for flag in ["--max-memory", "--max-record"] {
            let run = |size: &str, command: &[&str]| {
                let output = session.command(&[command, &[flag, size]].concat()).output().unwrap();
                (output.status.code(), String::from_utf8(output.stderr).unwrap())
            };
            for command in [&["verify", file][..], &["cat", file, "0"], &["repair", file, "-o", "out"]] {
                let (code, told) = run("1M", command);
                assert_eq!(code, Some(2), "{command:?} {flag}: {told}");
                assert!(
                    told.contains("over the limit of") || told.contains("more than the limit of"),
                    "{told}"
                );
                assert!(told.contains("--max-memory") && told.contains("--max-record"), "{told}");
                assert!(!session.path("out").exists());
            }
            assert_eq!(run("64MiB", &["verify", file]).0, Some(0), "{file}");
        }
    }
}

//! Pickles that are trees, and many that only pretend to be.

use super::super::tree::{Node, Tree, TreeBuilder};
use super::{read, write};

/// `(path, sample)` of everything in a tree.
fn entries(tree: &Tree) -> Vec<(String, Option<u64>)> {
    let mut walk = tree.walk(tree.root());
    let mut entries = Vec::new();
    while let Some((path, node)) = walk.next_entry() {
        let sample = match node {
            Node::File(sample) => Some(sample),
            Node::Folder(_) => None,
        };
        entries.push((path.to_string(), sample));
    }
    entries
}

fn refused(pickle: &[u8]) -> String {
    match read(pickle) {
        Ok(tree) => panic!("taken as {:?}", entries(&tree)),
        Err(error) => error.message().to_owned(),
    }
}

/// The output of `pickle.dumps(tree, protocol)` in Python 3.11.7 for
/// `OrderedDict(b=OrderedDict(x=0), ä=1)`.
#[test]
fn pickles_of_every_protocol_are_read() {
    let pickles: [&[u8]; 7] = [
        b"ccollections\nOrderedDict\np0\n(tRp1\nVb\np2\ng0\n(tRp3\nVx\np4\nI0\nssV\xe4\np5\nI1\ns.",
        b"ccollections\nOrderedDict\nq\x00)Rq\x01(X\x01\x00\x00\x00bq\x02h\x00)Rq\x03X\x01\x00\x00\x00xq\x04K\x00sX\x02\x00\x00\x00\xc3\xa4q\x05K\x01u.",
        b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(X\x01\x00\x00\x00bq\x02h\x00)Rq\x03X\x01\x00\x00\x00xq\x04K\x00sX\x02\x00\x00\x00\xc3\xa4q\x05K\x01u.",
        b"\x80\x03ccollections\nOrderedDict\nr\x00\x00\x00\x00)Rq\x01(X\x01\x00\x00\x00bq\x02j\x00\x00\x00\x00)Rq\x03X\x01\x00\x00\x00xq\x04M\x00\x00sX\x02\x00\x00\x00\xc3\xa4q\x05J\x01\x00\x00\x00u.",
        b"\x80\x04\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94(\x8c\x01b\x94h\x02)R\x94\x8c\x01x\x94K\x00s\x8c\x02\xc3\xa4\x94\x8a\x01\x01u.",
        // Plain dictionaries, and the marked form of both.
        b"\x80\x05}(\x8c\x01b}\x8c\x01x\x8a\x00s\x8c\x02\xc3\xa4K\x01u.",
        b"(Vb\n(Vx\nI0\ndV\\u00e4\nI1\nd.",
    ];
    for pickle in pickles {
        let tree = read(pickle).unwrap();
        assert_eq!(entries(&tree), [("b".into(), None), ("b/x".into(), Some(0)), ("ä".into(), Some(1))]);
    }
}

#[test]
fn escapes_of_protocol_0_are_undone() {
    let tree = read(b"(V\\U0001f600\\u005c\\u000a\\x\\\\u0041\nI0\nd.").unwrap();
    assert_eq!(entries(&tree), [("😀\\\n\\x\\\\u0041".into(), Some(0))]);
    let tree = read(b"(Va\\udcff\\\nI0\nd.").unwrap();
    assert_eq!(tree.find(tree.root(), b"a\xff\\"), Some(Node::File(0)));
}

#[test]
fn large_numbers_and_long_names_survive() {
    let mut builder = TreeBuilder::new();
    let root = builder.folder().unwrap();
    let numbers = [0, 255, 256, 65535, 65536, 0x7fff_ffff, 0x8000_0000, u64::from(u32::MAX), u64::MAX];
    for (at, number) in numbers.into_iter().enumerate() {
        let name = builder.name(format!("{at}{}", "n".repeat(at * 50)).as_bytes());
        builder.attach(root, name, Node::File(number)).unwrap();
    }
    let tree = builder.finish(root).unwrap();
    let mut pickle = Vec::new();
    write(&tree, &mut pickle).unwrap();
    let back: Vec<_> =
        entries(&read(&pickle).unwrap()).into_iter().filter_map(|(_, sample)| sample).collect();
    assert_eq!(back, numbers);
}

#[test]
fn every_opcode_outside_the_list_is_refused() {
    let allowed = b"(.JKMIRVX}dsut)cghjpqr\x80\x8a\x8c\x93\x94\x95";
    for code in (0..=255u8).filter(|code| !allowed.contains(code)) {
        // Values with which a real unpickler would execute the opcode.
        let pickle =
            [b"\x80\x04\x8c\x02os\x8c\x06system(\x8c\x02id", &[code][..], b"00000000\n00000\n."].concat();
        let reason = refused(&pickle);
        assert!(
            reason.contains("opcode ") && reason.contains("is not allowed in a tree"),
            "{code:#x}: {reason}"
        );
    }
}

/// Every pickle here would do something other than build a tree, or build one that is too large.
#[test]
fn hostile_pickles_are_refused_with_their_reason() {
    let global = "only OrderedDict is allowed";
    let cases: &[(&str, &[u8], &str)] = &[
        // Calls to functions.
        ("os.system", b"cos\nsystem\n(S'id'\ntR.", global),
        ("posix.system", b"cposix\nsystem\n(Vid\ntR.", global),
        ("eval", b"c__builtin__\neval\n(V1\ntR.", global),
        ("builtins.exec", b"\x80\x03cbuiltins\nexec\n(X\x01\x00\x00\x001tR.", global),
        ("builtins.getattr", b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.", global),
        ("subprocess.Popen", b"\x80\x04\x8c\x0asubprocess\x8c\x05Popen\x93)R.", global),
        ("importlib", b"cimportlib\nimport_module\n(Vos\ntR.", global),
        (
            "a dotted name",
            b"\x80\x04\x8c\x0bcollections\x8c\x20OrderedDict.fromkeys.__globals__\x93.",
            global,
        ),
        ("a dotted module", b"ccollections.abc\nOrderedDict\n)R.", global),
        ("another collection", b"ccollections\nnamedtuple\n)R.", global),
        ("defaultdict", b"ccollections\ndefaultdict\n)R.", global),
        ("a space in the module", b"ccollections \nOrderedDict\n)R.", global),
        ("upper case", b"cCollections\nOrderedDict\n)R.", global),
        ("a carriage return", b"ccollections\r\nOrderedDict\n)R.", global),
        ("an empty module", b"c\nOrderedDict\n)R.", global),
        ("a hidden zero", b"ccollections\0\nOrderedDict\n)R.", global),
        ("codecs", b"c_codecs\nencode\n(Vx\nVlatin1\ntR.", global),
        ("control characters", b"c\x1b[2J\nsystem\n.", "\"\\x1b[2J\""),
        ("INST", b"(Vid\nios\nsystem\n.", "opcode INST"),
        ("OBJ", b"(cos\nsystem\nVid\no.", global),
        ("OBJ of OrderedDict", b"(ccollections\nOrderedDict\no.", "opcode OBJ"),
        ("NEWOBJ", b"\x80\x02ccollections\nOrderedDict\n)\x81.", "opcode NEWOBJ"),
        ("NEWOBJ_EX", b"\x80\x04ccollections\nOrderedDict\n)}\x92.", "opcode NEWOBJ_EX"),
        ("BUILD of attributes", b"ccollections\nOrderedDict\n)R}b.", "opcode BUILD"),
        ("PERSID", b"Pfile:///etc/passwd\n.", "opcode PERSID"),
        ("BINPERSID", b"\x80\x02K\x00Q.", "opcode BINPERSID"),
        ("EXT1", b"\x80\x02\x82\x01.", "opcode EXT1"),
        ("EXT4", b"\x80\x02\x84\x01\0\0\0.", "opcode EXT4"),
        ("NEXT_BUFFER", b"\x80\x05\x97.", "opcode NEXT_BUFFER"),
        ("POP and go on", b"ccollections\nOrderedDict\n0}.", "opcode POP"),
        ("DUP", b"}2.", "opcode DUP"),
        // Calls other than the allowed one.
        ("REDUCE with a string", b"ccollections\nOrderedDict\nVx\nR.", "REDUCE of OrderedDict with a string"),
        ("REDUCE with a dict", b"ccollections\nOrderedDict\n}R.", "REDUCE of OrderedDict with a dictionary"),
        ("REDUCE of a string", b"Vos.system\n)R.", "REDUCE calls a string"),
        ("REDUCE of a dict", b"})R.", "REDUCE calls a dictionary"),
        ("REDUCE of a tuple", b"))R.", "REDUCE calls a tuple"),
        ("arguments", b"ccollections\nOrderedDict\n(VX\ntR.", "a tuple that is not empty"),
        ("TUPLE1", b"\x80\x02ccollections\nOrderedDict\n}\x85R.", "opcode TUPLE1"),
        ("STACK_GLOBAL of numbers", b"\x80\x04K\x00K\x01\x93.", "values that are not strings"),
        ("STACK_GLOBAL of the class", b"\x80\x04ccollections\nOrderedDict\n\x8c\x01x\x93.", "not strings"),
        // Values that are not a tree.
        ("a number", b"I5\n.", "it is a number, not a dictionary"),
        ("a string", b"Vx\n.", "it is a string, not a dictionary"),
        ("the class itself", b"ccollections\nOrderedDict\n.", "it is the class OrderedDict"),
        ("a tuple", b").", "it is a tuple"),
        ("nothing", b".", "the stack is empty"),
        ("no bytes", b"", "ends before STOP"),
        ("no STOP", b"\x80\x04}", "ends before STOP"),
        ("left-over values", b"}}.", "left over"),
        ("a left-over mark", b"(}.", "left over"),
        ("a mark instead of a value", b"}(.", "found a mark"),
        ("None as value", b"}\x8c\x01aNs.", "opcode NONE"),
        ("a float as value", b"}\x8c\x01aG\0\0\0\0\0\0\0\0s.", "opcode BINFLOAT"),
        ("bytes as value", b"}\x8c\x01aC\x01xs.", "opcode SHORT_BINBYTES"),
        ("a list as value", b"}\x8c\x01a]s.", "opcode EMPTY_LIST"),
        ("a string as value", b"}\x8c\x01a\x8c\x01bs.", "\"a\" maps to a string"),
        ("a tuple as value", b"}\x8c\x01a)s.", "\"a\" maps to a tuple"),
        ("the class as value", b"}\x8c\x01accollections\nOrderedDict\ns.", "maps to the class OrderedDict"),
        ("True as value", b"}\x8c\x01a\x88s.", "opcode NEWTRUE"),
        ("True of protocol 0", b"(Va\nI01\nd.", "a truth value"),
        ("False of protocol 0", b"(Va\nI00\nd.", "a truth value"),
        ("a negative number", b"}\x8c\x01aJ\xff\xff\xff\xffs.", "-1 is not a sample number"),
        ("a negative long", b"}\x8c\x01a\x8a\x01\x80s.", "-128 is not a sample number"),
        ("a negative decimal", b"(Va\nI-3\nd.", "-3 is not a sample number"),
        ("a huge long", b"}\x8c\x01a\x8a\x0c\0\0\0\0\0\0\0\0\0\0\0\x01s.", "12 bytes is not a sample number"),
        ("over 64 bits", b"}\x8c\x01a\x8a\x09\0\0\0\0\0\0\0\0\x01s.", "18446744073709551616 is not a sample"),
        ("a long decimal", b"(Va\nI111111111111111111111\nd.", "not a decimal number"),
        ("a hexadecimal number", b"(Va\nI0x10\nd.", "not a decimal number"),
        ("an underscored number", b"(Va\nI1_0\nd.", "not a decimal number"),
        ("a number as name", b"}K\x01K\x01s.", "a name is a number"),
        ("a dict as name", b"}}K\x01s.", "a name is a dictionary"),
        ("a name without value", b"}(\x8c\x01au.", "a name without a value"),
        ("SETITEM into a number", b"K\x01\x8c\x01aK\x01s.", "SETITEM into a number"),
        ("SETITEMS into the class", b"ccollections\nOrderedDict\n(u.", "SETITEMS into the class"),
        ("SETITEMS over a mark", b"((\x8c\x01aK\x01u.", "found a mark"),
        ("SETITEM on nothing", b"s.", "the stack is empty"),
        ("SETITEMS without mark", b"}u.", "there is no mark"),
        ("TUPLE without mark", b"t.", "there is no mark"),
        ("the same name twice", b"}(\x8c\x01aK\0\x8c\x01aK\x01u.", "\"a\" twice"),
        // Shapes that are not a tree.
        ("a cycle", b"}\x94\x8c\x01ah\0s.", "inside another one"),
        ("a longer cycle", b"}\x94\x8c\x01a}\x94\x8c\x01bh\0ss.", "inside another one"),
        ("a shared folder", b"}(\x8c\x01a}\x94\x8c\x01bh\0u.", "\"b\" is in two places"),
        ("a doubling chain", b"}\x94(\x8c\x01a}\x94\x8c\x01bh\x01u0.", "\"b\" is in two places"),
        // Invalid strings.
        ("not UTF-8", b"}\x8c\x01\xffK\0s.", "not UTF-8"),
        ("a lone high surrogate", b"}\x8c\x03\xed\xa0\xbdK\0s.", "represents no byte"),
        ("a surrogate pair", b"}\x8c\x06\xed\xa0\xbd\xed\xb8\x80K\0s.", "represents no byte"),
        ("an escaped slash", b"}\x8c\x03\xed\xb0\xafK\0s.", "represents no byte"),
        ("needless escapes", b"}\x8c\x06\xed\xb3\x83\xed\xb2\xa9K\0s.", "need no escape"),
        ("a broken escape", b"(V\\u12\nI0\nd.", "broken escape"),
        ("a signed escape", b"(V\\u+041\nI0\nd.", "broken escape"),
        ("beyond Unicode", b"(V\\U00110000\nI0\nd.", "broken escape"),
        ("STRING", b"(S'a'\nI0\nd.", "opcode STRING"),
        ("BINUNICODE8", b"}\x8d\x01\0\0\0\0\0\0\0aK\0s.", "opcode BINUNICODE8"),
        // Wrong lengths and counts.
        ("a huge string", b"}X\xff\xff\xff\xffaK\0s.", "4294967295 bytes it declares"),
        ("a string past the end", b"}\x8c\x05a.", "5 bytes it declares"),
        (
            "a huge frame",
            b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff}.",
            "a frame of 18446744073709551615 bytes",
        ),
        (
            "a frame past the end",
            b"\x80\x04\x95\x03\0\0\0\0\0\0\0}.",
            "a frame of 3 bytes exceeds the 2 left",
        ),
        ("a line without end", b"cos", "ends within a line"),
        ("a future protocol", b"\x80\x06}.", "protocol 6 does not exist"),
        ("PROTO inside", b"}\x80\x04.", "PROTO is not at the beginning"),
        ("a memo slot of 4 billion", b"}r\xff\xff\xff\xff.", "memo slot 4294967295 is out of range"),
        ("a memo slot of decimals", b"}p99999999999999999999\n.", "out of range"),
        ("a negative memo slot", b"}p-1\n.", "memo slot -1 is out of range"),
        ("an empty memo slot", b"h\x07.", "memo slot 7 is empty"),
        ("GET before PUT", b"g0\n.", "memo slot 0 is empty"),
        ("a negative GET", b"g-1\n.", "memo slot -1 is empty"),
        ("PUT of nothing", b"q\0.", "the stack is empty"),
        ("MEMOIZE of a mark", b"(\x94.", "found a mark"),
    ];
    assert!(cases.len() >= 50);
    for (name, pickle, reason) in cases {
        let message = refused(pickle);
        assert!(message.starts_with("the folder tree is refused: "), "{name}: {message}");
        assert!(message.contains(reason), "{name}: {message}");
        assert!(!message.contains(char::is_control), "{name}: {message:?}");
    }
}

#[test]
fn bombs_are_refused_quickly() {
    let nested = [&b"}\x8c\x01a".repeat(100_000)[..], b"}", &b"s".repeat(100_000), b"."].concat();
    assert!(refused(&nested).contains("1024 folders deep"));
    let marks = b"(".repeat(5_000_000);
    assert!(refused(&marks).contains("stacks more than"));
    let tuples = b")".repeat(5_000_000);
    assert!(refused(&tuples).contains("stacks more than"));
    // One long name in a hundred thousand folders: stored once, and its path is rejected.
    let mut long = vec![b'X', 0, 0x10, 1, 0];
    long.extend_from_slice(&[b'n'; 0x11000]);
    let mut bomb = [b"\x80\x04}(", &long[..], b"\x94K\0"].concat();
    for at in 0..100_000u32 {
        bomb.extend_from_slice(format!("X\x08\0\0\0{at:08}}}h\0K\0s").as_bytes());
    }
    bomb.extend_from_slice(b"u.");
    assert!(refused(&bomb).contains("4096 bytes"));
}

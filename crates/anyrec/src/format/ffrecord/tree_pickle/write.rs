//! Writes the pickle of a tree as Python 3.11's `pickle.dumps` writes nested `OrderedDict`s
//! (protocol 4).
//!
//! Three properties of Python are visible in the bytes. The output is split into frames of 64 KiB
//! or slightly more. Dictionaries are filled in batches of a thousand entries. A string is written
//! once and then referenced if it is the same object: Python has one object for each string of a
//! single Latin-1 character, while other file names are separate objects.

use super::super::python_text;
use super::super::tree::{FolderId, Node, Tree};
use super::opcode;
use crate::base::{Error, Result};
use std::ops::Range;

/// A frame is closed at the first value after this many bytes. Strings of this length or more are
/// written outside frames.
const FRAME_TARGET: usize = 64 << 10;

/// Frames shorter than this are written without a header.
const FRAME_MINIMUM: usize = 4;

/// Size of a frame's opcode and length.
const FRAME_HEADER: usize = 9;

/// Number of entries per SETITEMS.
const BATCH: usize = 1000;

/// Appends the pickle of a tree to `output`.
///
/// # Errors
/// If a name is longer than 4 GiB.
pub(in super::super) fn write(tree: &Tree, output: &mut Vec<u8>) -> Result<()> {
    output.extend_from_slice(&[opcode::PROTO, 4]);
    let mut pickler =
        Pickler { output, frame: None, memoized: 0, ordered_dict: None, characters: [None; 256] };
    pickler.tree(tree)?;
    pickler.put(&[opcode::STOP]);
    pickler.close_frame();
    Ok(())
}

struct Pickler<'a> {
    output: &'a mut Vec<u8>,
    /// Offset of the open frame's header.
    frame: Option<usize>,
    /// Number of values in the memo.
    memoized: u64,
    /// The memo slot of the class.
    ordered_dict: Option<u32>,
    /// The memo slots of one-character strings.
    characters: [Option<u32>; 256],
}

/// A dictionary that is being filled.
struct Open {
    folder: FolderId,
    /// The next entry.
    next: usize,
    /// The entries covered by the open SETITEM or SETITEMS.
    batch: Range<usize>,
}

impl Open {
    fn new(folder: FolderId) -> Self {
        Open { folder, next: 0, batch: 0..0 }
    }
}

impl Pickler<'_> {
    fn tree(&mut self, tree: &Tree) -> Result<()> {
        self.dictionary()?;
        let mut open = vec![Open::new(tree.root())];
        while let Some(at) = open.last_mut() {
            if at.next == at.batch.end {
                match at.batch.len() {
                    0 => {}
                    1 => self.put(&[opcode::SETITEM]),
                    _ => self.put(&[opcode::SETITEMS]),
                }
                at.batch = at.next..tree.children(at.folder).len().min(at.next + BATCH);
                match at.batch.len() {
                    0 => drop(open.pop()),
                    1 => {}
                    _ => self.put(&[opcode::MARK]),
                }
                continue;
            }
            let Some((name, node)) = tree.child(at.folder, at.next) else { break };
            at.next += 1;
            self.text(name)?;
            match node {
                Node::File(sample) => self.number(sample),
                Node::Folder(folder) => {
                    self.dictionary()?;
                    open.push(Open::new(folder));
                }
            }
        }
        Ok(())
    }

    /// Writes an empty OrderedDict.
    fn dictionary(&mut self) -> Result<()> {
        self.begin_value();
        match self.ordered_dict {
            Some(slot) => self.get(slot),
            None => {
                self.string(b"collections")?;
                self.string(b"OrderedDict")?;
                self.put(&[opcode::STACK_GLOBAL]);
                self.ordered_dict = self.memoize();
            }
        }
        self.begin_value();
        self.put(&[opcode::EMPTY_TUPLE, opcode::REDUCE]);
        self.memoize();
        Ok(())
    }

    fn text(&mut self, name: &[u8]) -> Result<()> {
        let text = python_text::to_pickled(name);
        let character = match *text.as_slice() {
            [ascii @ ..=0x7f] => Some(ascii),
            [first @ 0xc2..=0xc3, second] => Some((first & 3) << 6 | second & 0x3f),
            _ => None,
        };
        let Some(character) = character else {
            self.string(&text)?;
            return Ok(());
        };
        let character = usize::from(character);
        match self.characters.get(character).copied().flatten() {
            Some(slot) => {
                self.begin_value();
                self.get(slot);
            }
            None => {
                let slot = self.string(&text)?;
                if let Some(place) = self.characters.get_mut(character) {
                    *place = slot;
                }
            }
        }
        Ok(())
    }

    /// Writes a string for the first time and returns its memo slot.
    fn string(&mut self, text: &[u8]) -> Result<Option<u32>> {
        self.begin_value();
        let mut header = Vec::with_capacity(5);
        if let Ok(length) = u8::try_from(text.len()) {
            header.extend_from_slice(&[opcode::SHORT_BINUNICODE, length]);
        } else {
            let length = u32::try_from(text.len())
                .map_err(|_| Error::invalid("a name of more than 4 GiB cannot be packed"))?;
            header.push(opcode::BINUNICODE);
            header.extend_from_slice(&length.to_le_bytes());
        }
        if text.len() >= FRAME_TARGET {
            self.close_frame();
            self.output.extend_from_slice(&header);
            self.output.extend_from_slice(text);
        } else {
            self.put(&header);
            self.put(text);
        }
        Ok(self.memoize())
    }

    fn number(&mut self, number: u64) {
        self.begin_value();
        if let Ok(number) = u8::try_from(number) {
            self.put(&[opcode::BININT1, number]);
        } else if let Ok(number) = u16::try_from(number) {
            self.put(&[opcode::BININT2]);
            self.put(&number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.put(&[opcode::BININT]);
            self.put(&number.to_le_bytes());
        } else {
            // The shortest two's complement: a set top bit needs a zero byte above it.
            let mut bytes = i128::from(number).to_le_bytes().to_vec();
            while let [.., next, 0] = bytes.as_slice()
                && *next < 0x80
            {
                bytes.pop();
            }
            self.put(&[opcode::LONG1, bytes.len().to_le_bytes()[0]]);
            self.put(&bytes);
        }
    }

    fn get(&mut self, slot: u32) {
        match u8::try_from(slot) {
            Ok(slot) => self.put(&[opcode::BINGET, slot]),
            Err(_) => {
                self.put(&[opcode::LONG_BINGET]);
                self.put(&slot.to_le_bytes());
            }
        }
    }

    /// Stores the newest value in the memo and returns its slot, if it can be referenced.
    fn memoize(&mut self) -> Option<u32> {
        self.put(&[opcode::MEMOIZE]);
        let slot = u32::try_from(self.memoized).ok();
        self.memoized += 1;
        slot
    }

    /// Called before each value: only here may a frame end.
    fn begin_value(&mut self) {
        if self.frame.is_some_and(|begin| self.output.len() - begin - FRAME_HEADER >= FRAME_TARGET) {
            self.close_frame();
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.frame.is_none() {
            self.frame = Some(self.output.len());
            self.output.extend_from_slice(&[0; FRAME_HEADER]);
        }
        self.output.extend_from_slice(bytes);
    }

    fn close_frame(&mut self) {
        let Some(begin) = self.frame.take() else { return };
        let length = self.output.len() - begin - FRAME_HEADER;
        let mut header = vec![opcode::FRAME];
        header.extend_from_slice(&(length as u64).to_le_bytes());
        if length < FRAME_MINIMUM {
            header.clear();
        }
        self.output.splice(begin..begin + FRAME_HEADER, header);
    }
}

//! Reading a tree, and nothing but a tree, from a pickle.
//!
//! The machine has a stack, marks in it, and a memo of numbered values. Each opcode takes at
//! least one byte of the pickle and does a bounded amount of work, no value is ever copied, and
//! slots of the memo are numbered below the pickle's length: so time and memory grow in
//! proportion to the pickle, whatever it says.

use super::super::python_text;
use super::super::tree::{FolderId, NameId, Node, Tree, TreeBuilder, refusal};
use super::opcode;
use crate::base::{Error, Result};

/// Highest pickle protocol there is.
const HIGHEST_PROTOCOL: u8 = 5;

/// Values on the stack at once. Python stacks at most 1000 entries of each open folder.
const MAX_STACK: usize = 1 << 22;

/// A value of the machine.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// The class `collections.OrderedDict`.
    OrderedDict,
    EmptyTuple,
    Text(NameId),
    Number(u64),
    Folder(FolderId),
}

impl Value {
    fn kind(self) -> &'static str {
        match self {
            Value::OrderedDict => "the class OrderedDict",
            Value::EmptyTuple => "a tuple",
            Value::Text(_) => "a string",
            Value::Number(_) => "a number",
            Value::Folder(_) => "a dictionary",
        }
    }
}

/// The tree in a pickle. What follows its end is ignored, as Python does.
///
/// # Errors
/// [`Corrupt`](crate::ErrorKind::Corrupt) with the reason for anything that is not a tree.
pub(in super::super) fn read(pickle: &[u8]) -> Result<Tree> {
    let mut machine = Machine {
        pickle,
        at: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        tree: TreeBuilder::new(),
    };
    let mut opcode_at = 0;
    let root = machine.run(&mut opcode_at).map_err(|error| error.at_opcode(opcode_at))?;
    machine.tree.finish(root)
}

/// What a step of the machine gives.
type Step<T> = std::result::Result<T, Refusal>;

/// Why a pickle is refused.
#[derive(Debug)]
enum Refusal {
    /// A sentence of the machine's, which gets the place.
    Reason(String),
    /// What the tree says.
    Tree(Error),
}

impl Refusal {
    fn at_opcode(self, at: usize) -> Error {
        match self {
            Refusal::Reason(reason) => refusal(format!("{reason} (byte {at} of its pickle)")),
            Refusal::Tree(error) => error,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Tree(error)
    }
}

fn refuse<T>(reason: impl Into<String>) -> Step<T> {
    Err(Refusal::Reason(reason.into()))
}

struct Machine<'a> {
    pickle: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    /// Heights of the stack at which a mark stands.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
    tree: TreeBuilder,
}

impl<'a> Machine<'a> {
    /// Runs to the end; `opcode_at` follows along for messages.
    fn run(&mut self, opcode_at: &mut usize) -> Step<FolderId> {
        loop {
            *opcode_at = self.at;
            let [code] = self.array()?;
            if code == opcode::STOP {
                return match self.pop()? {
                    Value::Folder(root) if self.stack.is_empty() && self.marks.is_empty() => Ok(root),
                    Value::Folder(_) => refuse("values are left over at its end"),
                    other => refuse(format!("it is {}, not a dictionary", other.kind())),
                };
            }
            self.step(code)?;
            if self.stack.len() > MAX_STACK || self.marks.len() > MAX_STACK {
                return refuse(format!("it stacks more than {MAX_STACK} values"));
            }
        }
    }

    fn step(&mut self, code: u8) -> Step<()> {
        match code {
            opcode::PROTO => match self.array()? {
                [version] if version > HIGHEST_PROTOCOL => {
                    return refuse(format!("pickle protocol {version} does not exist"));
                }
                _ if self.at != 2 => return refuse("PROTO stands elsewhere than at the beginning"),
                _ => {}
            },
            opcode::FRAME => {
                let length = u64::from_le_bytes(self.array()?);
                let left = self.pickle.len() - self.at;
                if length > left as u64 {
                    return refuse(format!("a frame of {length} bytes exceeds the {left} left"));
                }
            }
            opcode::MARK => self.marks.push(self.stack.len()),
            opcode::BININT => {
                let number = i32::from_le_bytes(self.array()?);
                self.push_number(i128::from(number))?;
            }
            opcode::BININT1 => {
                let number = u8::from_le_bytes(self.array()?);
                self.push_number(i128::from(number))?;
            }
            opcode::BININT2 => {
                let number = u16::from_le_bytes(self.array()?);
                self.push_number(i128::from(number))?;
            }
            opcode::INT => {
                let number = self.decimal("INT")?;
                self.push_number(number)?;
            }
            opcode::LONG1 => {
                let number = self.long()?;
                self.push_number(number)?;
            }
            opcode::UNICODE => {
                let line = self.line()?;
                let text = unescape(line)?;
                self.push_text(&text)?;
            }
            opcode::BINUNICODE => {
                let length = u32::from_le_bytes(self.array()?);
                let text = self.take(u64::from(length))?;
                self.push_text(text)?;
            }
            opcode::SHORT_BINUNICODE => {
                let length = u8::from_le_bytes(self.array()?);
                let text = self.take(u64::from(length))?;
                self.push_text(text)?;
            }
            opcode::GLOBAL => {
                let (module, name) = (self.line()?, self.line()?);
                self.push_global(module, name)?;
            }
            opcode::STACK_GLOBAL => {
                let (Value::Text(name), Value::Text(module)) = (self.pop()?, self.pop()?) else {
                    return refuse("STACK_GLOBAL of values that are not strings");
                };
                let module = self.tree.name_bytes(module).to_vec();
                let name = self.tree.name_bytes(name).to_vec();
                self.push_global(&module, &name)?;
            }
            opcode::REDUCE => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                match (callable, arguments) {
                    (Value::OrderedDict, Value::EmptyTuple) => self.push_folder()?,
                    (Value::OrderedDict, other) => {
                        return refuse(format!("REDUCE of OrderedDict with {}", other.kind()));
                    }
                    (other, _) => return refuse(format!("REDUCE calls {}", other.kind())),
                }
            }
            opcode::EMPTY_TUPLE => self.stack.push(Value::EmptyTuple),
            opcode::TUPLE => {
                if self.above_mark()?.next().is_some() {
                    return refuse("a tuple that is not empty");
                }
                self.stack.push(Value::EmptyTuple);
            }
            opcode::EMPTY_DICT => self.push_folder()?,
            opcode::DICT => {
                let items: Vec<Value> = self.above_mark()?.collect();
                let folder = self.tree.folder()?;
                self.set_items(folder, &items)?;
                self.stack.push(Value::Folder(folder));
            }
            opcode::SETITEM => {
                let (value, name) = (self.pop()?, self.pop()?);
                let folder = self.top_folder("SETITEM")?;
                self.set_items(folder, &[name, value])?;
            }
            opcode::SETITEMS => {
                let items: Vec<Value> = self.above_mark()?.collect();
                let folder = self.top_folder("SETITEMS")?;
                self.set_items(folder, &items)?;
            }
            opcode::PUT => {
                let slot = self.decimal("PUT")?;
                self.put(slot)?;
            }
            opcode::BINPUT => {
                let slot = u8::from_le_bytes(self.array()?);
                self.put(i128::from(slot))?;
            }
            opcode::LONG_BINPUT => {
                let slot = u32::from_le_bytes(self.array()?);
                self.put(i128::from(slot))?;
            }
            opcode::MEMOIZE => self.put(self.memo.len() as i128)?,
            opcode::GET => {
                let slot = self.decimal("GET")?;
                self.get(slot)?;
            }
            opcode::BINGET => {
                let slot = u8::from_le_bytes(self.array()?);
                self.get(i128::from(slot))?;
            }
            opcode::LONG_BINGET => {
                let slot = u32::from_le_bytes(self.array()?);
                self.get(i128::from(slot))?;
            }
            other => return refuse(format!("opcode {} has no place in a tree", describe(other))),
        }
        Ok(())
    }

    fn take(&mut self, count: u64) -> Step<&'a [u8]> {
        let rest = self.pickle.get(self.at..).unwrap_or_default();
        match usize::try_from(count).ok().and_then(|count| rest.get(..count)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => refuse(format!("it ends within {count} bytes that it promises")),
        }
    }

    fn array<const COUNT: usize>(&mut self) -> Step<[u8; COUNT]> {
        let rest = self.pickle.get(self.at..).unwrap_or_default();
        match rest.first_chunk() {
            Some(taken) => {
                self.at += COUNT;
                Ok(*taken)
            }
            None => refuse("it ends before STOP"),
        }
    }

    /// The bytes up to the next newline.
    fn line(&mut self) -> Step<&'a [u8]> {
        let rest = self.pickle.get(self.at..).unwrap_or_default();
        match memchr::memchr(b'\n', rest) {
            Some(end) => {
                self.at += end + 1;
                Ok(rest.get(..end).unwrap_or_default())
            }
            None => refuse("it ends within a line"),
        }
    }

    fn decimal(&mut self, opcode: &str) -> Step<i128> {
        let line = self.line()?;
        let digits = line.strip_prefix(b"-").unwrap_or(line);
        // Python's way to say False and True in protocol 0.
        if opcode == "INT" && (line == b"00" || line == b"01") {
            return refuse("a truth value is not a sample number");
        }
        // 20 digits hold any sample number there can be.
        if digits.is_empty() || digits.len() > 20 || !digits.iter().all(u8::is_ascii_digit) {
            return refuse(format!("{opcode} of something that is not a decimal number"));
        }
        let number = digits.iter().fold(0, |number, digit| number * 10 + i128::from(digit - b'0'));
        Ok(if digits.len() < line.len() { -number } else { number })
    }

    /// A little-endian two's complement number with its length before it.
    fn long(&mut self) -> Step<i128> {
        let length = u8::from_le_bytes(self.array()?);
        let bytes = self.take(u64::from(length))?;
        if bytes.len() > 9 {
            return refuse(format!("a number of {length} bytes is no sample number"));
        }
        let sign = if bytes.last().is_some_and(|last| *last >= 0x80) { 0xff } else { 0 };
        let mut wide = [sign; 16];
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(i128::from_le_bytes(wide))
    }

    fn pop(&mut self) -> Step<Value> {
        if self.marks.last().is_some_and(|&mark| mark >= self.stack.len()) {
            return refuse("a mark stands where a value is needed");
        }
        match self.stack.pop() {
            Some(value) => Ok(value),
            None => refuse("the stack is empty"),
        }
    }

    /// Takes the newest mark and what stands above it.
    fn above_mark(&mut self) -> Step<std::vec::Drain<'_, Value>> {
        match self.marks.pop() {
            Some(mark) if mark <= self.stack.len() => Ok(self.stack.drain(mark..)),
            _ => refuse("there is no mark"),
        }
    }

    fn top_folder(&self, opcode: &str) -> Step<FolderId> {
        match self.stack.last() {
            _ if self.marks.last().is_some_and(|&mark| mark >= self.stack.len()) => {
                refuse("a mark stands where a value is needed")
            }
            Some(Value::Folder(folder)) => Ok(*folder),
            Some(other) => refuse(format!("{opcode} into {}", other.kind())),
            None => refuse("the stack is empty"),
        }
    }

    fn push_number(&mut self, number: i128) -> Step<()> {
        match u64::try_from(number) {
            Ok(number) => self.stack.push(Value::Number(number)),
            Err(_) => return refuse(format!("{number} is no sample number")),
        }
        Ok(())
    }

    fn push_text(&mut self, text: &[u8]) -> Step<()> {
        match python_text::from_pickled(text) {
            Ok(name) => {
                let name = self.tree.name(&name);
                self.stack.push(Value::Text(name));
                Ok(())
            }
            Err(reason) => refuse(reason),
        }
    }

    fn push_folder(&mut self) -> Step<()> {
        let folder = self.tree.folder()?;
        self.stack.push(Value::Folder(folder));
        Ok(())
    }

    fn push_global(&mut self, module: &[u8], name: &[u8]) -> Step<()> {
        if module == b"collections" && name == b"OrderedDict" {
            self.stack.push(Value::OrderedDict);
            return Ok(());
        }
        let (module, name) = (bstr::BStr::new(module), bstr::BStr::new(name));
        refuse(format!("it asks for {name:?} of {module:?}, and only OrderedDict is allowed"))
    }

    /// Puts pairs of name and value into a folder.
    fn set_items(&mut self, folder: FolderId, items: &[Value]) -> Step<()> {
        let (pairs, odd) = items.as_chunks::<2>();
        if !odd.is_empty() {
            return refuse("a name without a value");
        }
        for &[name, value] in pairs {
            let Value::Text(name) = name else {
                return refuse(format!("a name is {}, not a string", name.kind()));
            };
            let node = match value {
                Value::Number(sample) => Node::File(sample),
                Value::Folder(child) => Node::Folder(child),
                other => {
                    let name = self.tree.name_bytes(name);
                    return refuse(format!("{name:?} leads to {}", other.kind()));
                }
            };
            self.tree.attach(folder, name, node)?;
        }
        Ok(())
    }

    fn put(&mut self, slot: i128) -> Step<()> {
        // Python numbers the slots one by one, so that there are fewer than bytes.
        let Some(slot) = usize::try_from(slot).ok().filter(|&slot| slot < self.pickle.len()) else {
            return refuse(format!("memo slot {slot} is out of proportion"));
        };
        let value = self.pop()?;
        self.stack.push(value);
        if slot >= self.memo.len() {
            self.memo.resize(slot + 1, None);
        }
        if let Some(place) = self.memo.get_mut(slot) {
            *place = Some(value);
        }
        Ok(())
    }

    fn get(&mut self, slot: i128) -> Step<()> {
        let value = usize::try_from(slot).ok().and_then(|slot| *self.memo.get(slot)?);
        match value {
            Some(value) => self.stack.push(value),
            None => return refuse(format!("memo slot {slot} is empty")),
        }
        Ok(())
    }
}

/// Undoes Python's `raw-unicode-escape`: Latin-1, with `\uXXXX` and `\UXXXXXXXX` for the rest.
fn unescape(line: &[u8]) -> Step<Vec<u8>> {
    let mut text = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [first, tail @ ..] = rest {
        let digits = match (first, tail) {
            (b'\\', [b'u', ..]) => 4,
            (b'\\', [b'U', ..]) => 8,
            (b'\\', [other, tail @ ..]) => {
                python_text::push_code_point(&mut text, u32::from(*first));
                python_text::push_code_point(&mut text, u32::from(*other));
                rest = tail;
                continue;
            }
            _ => {
                python_text::push_code_point(&mut text, u32::from(*first));
                rest = tail;
                continue;
            }
        };
        let code_point = tail
            .get(1..=digits)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .filter(|&code_point| code_point <= u32::from(char::MAX));
        match code_point {
            Some(code_point) => python_text::push_code_point(&mut text, code_point),
            None => return refuse("a string with a broken escape"),
        }
        rest = tail.get(1 + digits..).unwrap_or_default();
    }
    Ok(text)
}

/// An opcode that trees have no use for, by name.
fn describe(code: u8) -> String {
    let name = match code {
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        b'F' => "FLOAT",
        b'G' => "BINFLOAT",
        b'L' => "LONG",
        b'N' => "NONE",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        b'S' => "STRING",
        b'T' => "BINSTRING",
        b'U' => "SHORT_BINSTRING",
        b'a' => "APPEND",
        b'b' => "BUILD",
        b'e' => "APPENDS",
        b'i' => "INST",
        b'l' => "LIST",
        b']' => "EMPTY_LIST",
        b'o' => "OBJ",
        b'B' => "BINBYTES",
        b'C' => "SHORT_BINBYTES",
        0x81 => "NEWOBJ",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        0x85 => "TUPLE1",
        0x86 => "TUPLE2",
        0x87 => "TUPLE3",
        0x88 => "NEWTRUE",
        0x89 => "NEWFALSE",
        0x8b => "LONG4",
        0x8d => "BINUNICODE8",
        0x8e => "BINBYTES8",
        0x8f => "EMPTY_SET",
        0x90 => "ADDITEMS",
        0x91 => "FROZENSET",
        0x92 => "NEWOBJ_EX",
        0x96 => "BYTEARRAY8",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return format!("{code:#04x}"),
    };
    name.to_owned()
}

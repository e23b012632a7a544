//! The pickle that holds a packed folder's tree.
//!
//! A pickle is a program for a small virtual machine, and a general unpickler lets that program
//! call any function. [`read`] supports only what a tree needs: `dict` and `OrderedDict` that map
//! strings to numbers or to nested dictionaries. Anything else is rejected with a reason, and
//! nothing is ever called. [`write`] produces the same bytes as Python 3.11 for the same tree,
//! which every version of the original reads.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::read;
pub(super) use write::write;

/// The opcodes of the pickle machine that trees use.
mod opcode {
    pub(super) const MARK: u8 = b'(';
    pub(super) const STOP: u8 = b'.';
    pub(super) const BININT: u8 = b'J';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const INT: u8 = b'I';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const REDUCE: u8 = b'R';
    pub(super) const UNICODE: u8 = b'V';
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
    pub(super) const DICT: u8 = b'd';
    pub(super) const EMPTY_DICT: u8 = b'}';
    pub(super) const SETITEM: u8 = b's';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const TUPLE: u8 = b't';
    pub(super) const EMPTY_TUPLE: u8 = b')';
    pub(super) const GLOBAL: u8 = b'c';
    pub(super) const STACK_GLOBAL: u8 = 0x93;
    pub(super) const GET: u8 = b'g';
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
    pub(super) const PUT: u8 = b'p';
    pub(super) const BINPUT: u8 = b'q';
    pub(super) const LONG_BINPUT: u8 = b'r';
    pub(super) const MEMOIZE: u8 = 0x94;
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const FRAME: u8 = 0x95;
}

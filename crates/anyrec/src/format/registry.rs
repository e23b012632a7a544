//! Formats from outside this crate.

use super::{FORMATS, Format};
use once_cell::race::OnceBox;

/// A registered format, and those registered after it. Nodes are never removed, and there is no lock: a
/// forked child may look formats up at any time.
struct Node {
    format: &'static dyn Format,
    next: OnceBox<Node>,
}

static REGISTERED: OnceBox<Node> = OnceBox::new();

/// Makes a format known to everything that finds formats by content, by name or by id, after those of
/// this library. Registering it again changes nothing.
///
/// `docs/adding-a-format.md` says what a format promises, and the feature `testkit` has the checks.
pub fn register(format: &'static dyn Format) {
    if formats().any(|known| known.id() == format.id()) {
        return;
    }
    let mut place = &REGISTERED;
    let mut node = Box::new(Node { format, next: OnceBox::new() });
    // Another thread may take the place first: with the same format, or the node goes behind it.
    while let Err(refused) = place.set(node) {
        node = refused;
        match place.get() {
            Some(taken) if taken.format.id() != format.id() => place = &taken.next,
            _ => return,
        }
    }
}

/// All formats: those of this library, then those that were registered.
pub fn formats() -> impl Iterator<Item = &'static dyn Format> {
    let registered = std::iter::successors(REGISTERED.get(), |node| node.next.get());
    FORMATS.iter().copied().chain(registered.map(|node| node.format))
}

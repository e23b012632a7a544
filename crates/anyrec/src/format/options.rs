//! How files are opened and written.
//!
//! What holds for every format is a field here. What only one format has is a struct in that format's
//! folder, given through [`OpenOptions::with`] and [`WriteOptions::with`]:
//!
//! ```
//! use anyrec::format::{WriteOptions, grail};
//!
//! let own = grail::WriteOptions::default().with_transformer(grail::Transform::zstd());
//! let options = WriteOptions::default().with_overwrite(true).with(own);
//! ```

use super::Format;
use crate::base::{Error, Limits, PositionList, Result};
use crate::io::{Access, Durability};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// The options of one format.
pub trait FormatOptions: Any + Clone + Default + fmt::Debug + Send + Sync {
    /// The format that has them.
    fn format() -> &'static dyn Format;
}

/// The options of single formats, at most one of each type.
#[derive(Clone, Default)]
struct Own(Vec<Slot>);

#[derive(Clone)]
struct Slot {
    kind: TypeId,
    format: &'static dyn Format,
    value: Arc<dyn OwnValue>,
}

trait OwnValue: Any + fmt::Debug + Send + Sync {}
impl<T: FormatOptions> OwnValue for T {}

impl Own {
    fn set<T: FormatOptions>(&mut self, value: T) {
        self.0.retain(|slot| slot.kind != TypeId::of::<T>());
        self.0.push(Slot { kind: TypeId::of::<T>(), format: T::format(), value: Arc::new(value) });
    }

    fn get<T: FormatOptions>(&self) -> Option<&T> {
        let slot = self.0.iter().find(|slot| slot.kind == TypeId::of::<T>())?;
        (&*slot.value as &dyn Any).downcast_ref()
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|slot| (slot.format.id(), &slot.value))).finish()
    }
}

/// How a file is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The format, where detection is not wanted.
    pub format: Option<&'static dyn Format>,
    /// Checksums are verified (default true).
    pub verify: bool,
    /// Damaged stretches are left out instead of being an error (default false).
    pub skip_damage: bool,
    /// Scans look for oddities that cost no data, and report them (default true). Looking takes time
    /// where every byte must be seen for it.
    pub notices: bool,
    /// How local files are read.
    pub access: Access,
    /// Threads that work on one batch, or on one file in [`verify`](crate::verify()) and
    /// [`convert`](crate::convert::convert); 0 (the default) for as many as there are cores.
    pub threads: usize,
    /// Bounds on allocations.
    pub limits: Limits,
    /// Positions known beforehand (from a table), so that no scan is needed to number records.
    pub positions: Option<Arc<PositionList>>,
    own: Own,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            format: None,
            verify: true,
            skip_damage: false,
            notices: true,
            access: Access::Auto,
            threads: 0,
            limits: Limits::default(),
            positions: None,
            own: Own::default(),
        }
    }
}

impl OpenOptions {
    /// Takes the file for this format instead of detecting it.
    #[must_use]
    pub fn with_format(mut self, format: &'static dyn Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets [`verify`](OpenOptions::verify).
    #[must_use]
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets [`skip_damage`](OpenOptions::skip_damage).
    #[must_use]
    pub fn with_skip_damage(mut self, skip_damage: bool) -> Self {
        self.skip_damage = skip_damage;
        self
    }

    /// Sets [`notices`](OpenOptions::notices).
    #[must_use]
    pub fn with_notices(mut self, notices: bool) -> Self {
        self.notices = notices;
        self
    }

    /// Sets [`access`](OpenOptions::access).
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets [`threads`](OpenOptions::threads).
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets [`limits`](OpenOptions::limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets [`positions`](OpenOptions::positions).
    #[must_use]
    pub fn with_positions(mut self, positions: Arc<PositionList>) -> Self {
        self.positions = Some(positions);
        self
    }

    /// Adds the options of one format. Files of other formats do not look at them.
    #[must_use]
    pub fn with<T: FormatOptions>(mut self, options: T) -> Self {
        self.set(options);
        self
    }

    /// As [`with`](OpenOptions::with), in place.
    pub fn set<T: FormatOptions>(&mut self, options: T) {
        self.own.set(options);
    }

    /// The options of one format, as they were given or else its defaults.
    pub fn own<T: FormatOptions>(&self) -> T {
        self.own.get::<T>().cloned().unwrap_or_default()
    }

    /// The number of threads that [`threads`](OpenOptions::threads) stands for.
    pub fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

/// How a file is written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// An existing file may be replaced.
    pub overwrite: bool,
    /// What the finished file survives.
    pub durability: Durability,
    /// The number of records, if it is known. Formats that begin with a table lay it out at once.
    pub count: Option<u64>,
    own: Own,
}

impl WriteOptions {
    /// Sets [`overwrite`](WriteOptions::overwrite).
    #[must_use]
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets [`durability`](WriteOptions::durability).
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets [`count`](WriteOptions::count).
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Adds the options of one format. A writer of another format refuses them, so that nothing is
    /// silently ignored.
    #[must_use]
    pub fn with<T: FormatOptions>(mut self, options: T) -> Self {
        self.set(options);
        self
    }

    /// As [`with`](WriteOptions::with), in place.
    pub fn set<T: FormatOptions>(&mut self, options: T) {
        self.own.set(options);
    }

    /// The options of one format, as they were given or else its defaults.
    pub fn own<T: FormatOptions>(&self) -> T {
        self.own.get::<T>().cloned().unwrap_or_default()
    }

    /// For writers: the options of one format, if no others were given.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) where options of another format were given.
    pub fn only<T: FormatOptions>(&self) -> Result<T> {
        match self.own.0.iter().find(|slot| slot.format.id() != T::format().id()) {
            Some(slot) => Err(Error::invalid(format!(
                "{} files take no {} options",
                T::format().name(),
                slot.format.name()
            ))),
            None => Ok(self.own()),
        }
    }
}

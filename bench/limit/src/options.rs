//! `name=value` arguments, and what is wrong with them.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why nothing was measured, as one sentence.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure(error.to_string())
    }
}

/// The arguments of one command.
pub struct Options(HashMap<String, String>);

impl Options {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut values = HashMap::new();
        for argument in arguments {
            let (name, value) = argument
                .split_once('=')
                .ok_or_else(|| Failure::new(format!("{argument:?} is not of the form name=value")))?;
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(Options(values))
    }

    pub fn is(&self, name: &str, value: &str) -> bool {
        self.0.get(name).is_some_and(|given| given == value)
    }

    pub fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        self.text(name).map(PathBuf::from)
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Failure> {
        let text = self.text(name)?;
        text.parse().map_err(|_| Failure::new(format!("{name}={text} is not such a number")))
    }

    pub fn seconds(&self, name: &str) -> Result<Duration, Failure> {
        Duration::try_from_secs_f64(self.number(name)?)
            .map_err(|error| Failure::new(format!("{name} is no duration: {error}")))
    }

    /// The 64-bit integers in the file of that name.
    pub fn integers(&self, name: &str) -> Result<Vec<u64>, Failure> {
        let data = std::fs::read(self.path(name)?)?;
        let (numbers, rest) = data.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Failure::new(format!("{name}: the file is not made of 64-bit integers")));
        }
        Ok(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    fn text(&self, name: &str) -> Result<&str, Failure> {
        self.0.get(name).map(String::as_str).ok_or_else(|| Failure::new(format!("{name}= is missing")))
    }
}

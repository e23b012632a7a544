//! Flags for the options of single formats, generated from each format's own list.

use anyrec::Value;
use anyrec::format::{self, FORMATS, Format, OpenOptions, Setting, SettingValue, WriteOptions};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The ids of all formats, as the possible values of an argument.
pub fn formats() -> PossibleValuesParser {
    FORMATS.iter().map(|format| format.id()).collect::<Vec<_>>().into()
}

/// The settings that were given: name and values.
type Given = Vec<(&'static str, Vec<OsString>)>;

/// Settings for opening files.
#[derive(Debug, Default)]
pub struct OpenSettings(Given);

/// Settings for writing files.
#[derive(Debug, Default)]
pub struct WriteSettings(Given);

impl OpenSettings {
    /// Applies them to the library's options.
    pub fn apply(&self, options: &mut OpenOptions) -> anyrec::Result<()> {
        self.0.iter().try_for_each(|(name, values)| format::set_open(options, name, &value(values)))
    }
}

impl WriteSettings {
    /// Applies them to the library's options for a file of that format.
    pub fn apply(&self, options: &mut WriteOptions, format: &'static dyn Format) -> anyrec::Result<()> {
        self.0.iter().try_for_each(|(name, values)| format::set_write(options, format, name, &value(values)))
    }
}

fn value(values: &[OsString]) -> SettingValue {
    let text = |value: &OsString| Value::Text(value.clone().into_vec().into());
    match values {
        [one] => SettingValue::One(text(one)),
        many => SettingValue::List(many.iter().map(text).collect()),
    }
}

/// The settings that have a flag, each once, with the names of the formats that support it.
fn flags(of: fn(&dyn Format) -> &'static [Setting]) -> Vec<(Setting, &'static str, String)> {
    let mut flags: Vec<(Setting, &'static str, String)> = Vec::new();
    for format in FORMATS {
        for setting in of(*format) {
            let Some(flag) = setting.flag else { continue };
            match flags.iter_mut().find(|(other, ..)| other.name == setting.name) {
                Some((.., formats)) => formats.push_str(&format!(", {}", format.name())),
                None => flags.push((*setting, flag, format.name().to_owned())),
            }
        }
    }
    flags
}

fn augment(command: Command, of: fn(&dyn Format) -> &'static [Setting]) -> Command {
    flags(of).into_iter().fold(command, |command, (setting, flag, formats)| {
        let action = if setting.repeated { ArgAction::Append } else { ArgAction::Set };
        let repeated = if setting.repeated { " (may be repeated)" } else { "" };
        command.arg(
            Arg::new(setting.name)
                .long(flag)
                .value_name(setting.value)
                .action(action)
                .value_parser(clap::value_parser!(OsString))
                .help(format!("{formats}: {}{repeated}", setting.help)),
        )
    })
}

fn given(matches: &ArgMatches, of: fn(&dyn Format) -> &'static [Setting]) -> Given {
    let flags = flags(of).into_iter();
    let values = |(setting, ..): (Setting, &'static str, String)| {
        let values = matches.get_many::<OsString>(setting.name)?;
        Some((setting.name, values.cloned().collect()))
    };
    flags.filter_map(values).collect()
}

macro_rules! flags_of {
    ($settings:ty, $method:ident) => {
        impl FromArgMatches for $settings {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(given(matches, |format| format.$method())))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = given(matches, |format| format.$method());
                Ok(())
            }
        }

        impl Args for $settings {
            fn augment_args(command: Command) -> Command {
                augment(command, |format| format.$method())
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

flags_of!(OpenSettings, open_settings);
flags_of!(WriteSettings, write_settings);

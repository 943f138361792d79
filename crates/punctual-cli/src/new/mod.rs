//! `punctual new`: creates a crate from a template.

mod board;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use self::board::Board;
use crate::output::print;
use crate::status::GOOD;

/// A file of a crate: its path in it, and its text, in which placeholders such as `@NAME@` are
/// replaced.
type File = (&'static str, &'static str);

/// Files shared by crates for Linux.
const HOSTED: [File; 3] = [
    ("Cargo.toml", include_str!("../../templates/common/manifest.toml")),
    (".gitignore", include_str!("../../templates/common/gitignore")),
    ("@NAME@.service", include_str!("../../templates/common/unit.service")),
];

const README: File = ("README.md", include_str!("../../templates/common/readme.md"));

const BARE: &[File] = &[
    ("Cargo.toml", include_str!("../../templates/bare/manifest.toml")),
    (".gitignore", include_str!("../../templates/common/gitignore")),
    (".cargo/config.toml", include_str!("../../templates/bare/config.toml")),
    ("README.md", include_str!("../../templates/bare/readme.md")),
    ("src/main.rs", include_str!("../../templates/bare/main.rs")),
];

/// What a crate starts from.
#[derive(Debug, Clone, Copy)]
enum Template {
    Plain,
    Gimbal,
    Ros2,
    /// A board without an operating system.
    Bare(Board),
}

impl Template {
    /// Templates for Linux, by name.
    const LINUX: [(&str, &str, Self); 3] = [
        ("plain", "A control loop at 1 kHz, and an alarm", Self::Plain),
        ("gimbal", "A controller of two simulated axes, steered from the standard input", Self::Gimbal),
        ("ros2", "A control loop with topics for ROS 2", Self::Ros2),
    ];

    /// Returns a parser of names, with the help of each.
    fn parser() -> impl TypedValueParser<Value = Self> {
        let linux = Self::LINUX.map(|(name, help, _)| PossibleValue::new(name).help(help));
        let boards = Board::all().map(|board| PossibleValue::new(board.name()).help("A task on this board"));
        PossibleValuesParser::new(linux.into_iter().chain(boards)).map(|name| {
            let of_linux = Self::LINUX.into_iter().find(|row| row.0 == name).map(|row| row.2);
            of_linux.unwrap_or_else(|| Self::Bare(Board::named(&name)))
        })
    }

    /// Returns all files.
    fn files(self) -> Vec<File> {
        let own: &[File] = match self {
            Self::Plain => &[README, ("src/main.rs", include_str!("../../templates/plain/main.rs"))],
            Self::Gimbal => &[
                README,
                ("src/main.rs", include_str!("../../templates/gimbal/main.rs")),
                ("src/axis.rs", include_str!("../../templates/gimbal/axis.rs")),
            ],
            Self::Ros2 => &[
                ("README.md", include_str!("../../templates/ros2/readme.md")),
                ("src/main.rs", include_str!("../../templates/ros2/main.rs")),
            ],
            Self::Bare(_) => return BARE.to_vec(),
        };
        [&HOSTED, own].concat()
    }

    /// Returns Punctual's own crates that the template needs: directory in a checkout, name, and
    /// further keys of the manifest.
    fn dependencies(self) -> Vec<(&'static str, &'static str, String)> {
        let library = ("crates/punctual", "punctual");
        let bridge = ("crates/punctual-bridge", "punctual-bridge");
        let bare = ("bare/punctual-bare", "punctual-bare");
        let with = |(place, name): (&'static str, &'static str), more: &str| (place, name, more.to_owned());
        match self {
            Self::Plain | Self::Gimbal => vec![with(library, "")],
            Self::Ros2 => vec![with(library, ""), with(bridge, "")],
            Self::Bare(board) => vec![
                with(library, "default-features = false, features = [\"monitoring\"]"),
                with(bare, &format!("features = [\"{}\"]", board.name())),
            ],
        }
    }
}

pub(crate) fn run(arguments: &New) -> Result<u8, String> {
    let (directory, library) = make(arguments)?;
    let directory = directory.display();
    let next = match arguments.template {
        Template::Bare(_) => "cargo run --release --features semihosting",
        _ => "cargo test && cargo run --release",
    };
    let uses = match library {
        Some(checkout) => format!("the checkout {}", checkout.display()),
        None => format!("punctual {}", env!("CARGO_PKG_VERSION")),
    };
    let needs = match arguments.template {
        Template::Bare(board) => {
            let target = board.target();
            format!("needs QEMU and the target {target}, for example by `rustup target add {target}`\n")
        }
        _ => String::new(),
    };
    let created = format!("created {directory}, which depends on {uses}");
    print(&format!("{created}\n{needs}next: cd {directory} && {next}\n"));
    Ok(GOOD)
}

/// Creates the crate, or nothing. Returns its directory and the checkout that it depends on, if
/// any.
fn make(arguments: &New) -> Result<(PathBuf, Option<PathBuf>), String> {
    let directory = &arguments.directory;
    let shown = directory.display();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    check_name(&name)?;
    let checkout = checkout(arguments.path.as_deref())?;
    let dependencies = dependencies(arguments, checkout.as_deref())?;
    // An existing directory may contain work of the user.
    fs::create_dir(directory).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{shown} already exists; choose another name, or remove it"),
        io::ErrorKind::NotFound => format!("{shown}: its parent directory does not exist; create it first"),
        io::ErrorKind::PermissionDenied => {
            format!("{shown}: {error}; choose a directory that this user may write to")
        }
        _ => format!("{shown}: {error}"),
    })?;
    let written = write(directory, &name, &dependencies, arguments);
    written.map_err(|(path, error)| {
        // A partial crate is useless. A failure to remove it is in the message.
        let left = match fs::remove_dir_all(directory) {
            Ok(()) => String::new(),
            Err(_) => format!("; {shown} is incomplete, remove it"),
        };
        format!("{}: {error}{left}", path.display())
    })?;
    Ok((directory.clone(), checkout))
}

fn write(
    directory: &Path,
    name: &str,
    dependencies: &str,
    arguments: &New,
) -> Result<(), (PathBuf, io::Error)> {
    let mut words = vec![("@NAME@", name.to_owned()), ("@DEPENDENCIES@", dependencies.to_owned())];
    if let Template::Bare(board) = arguments.template {
        words.push(("@BOARD@", board.name().to_owned()));
        words.push(("@TARGET@", board.target().to_owned()));
        words.push(("@RUNNER@", board.runner()));
    }
    for (path, text) in arguments.template.files() {
        let path = directory.join(path.replace("@NAME@", name));
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(directory))?;
            let text = words.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with));
            fs::File::create_new(&path)?.write_all(text.as_bytes())
        };
        write().map_err(|error| (path.clone(), error))?;
    }
    Ok(())
}

/// Returns the root of the checkout that provides the library, or `None` for the released version.
fn checkout(path: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let root = |directory: &Path| {
        let root = fs::canonicalize(directory).ok()?;
        root.join("crates/punctual/src/lib.rs").is_file().then_some(root)
    };
    if let Some(path) = path {
        return root(path).map(Some).ok_or_else(|| {
            format!(
                "--path {}: not a checkout of Punctual, since it has no crates/punctual; give the root of \
                 one",
                path.display()
            )
        });
    }
    // A registry unpacks only this package; in a checkout it is two directories below the root.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    match own.ancestors().nth(2).filter(|_| own.ends_with("crates/punctual-cli")) {
        None => Ok(None),
        Some(built_from) => root(built_from).map(Some).ok_or_else(|| {
            format!(
                "the checkout {}, from which this command was built, no longer exists; give its \
                 new location with --path",
                built_from.display()
            )
        }),
    }
}

/// Returns the lines of the manifest for Punctual's own crates: by directory in a checkout, or by
/// version.
fn dependencies(arguments: &New, checkout: Option<&Path>) -> Result<String, String> {
    let line = |(place, name, more): (&str, &str, String)| {
        let at = match checkout {
            None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            Some(checkout) => format!("path = \"{}\"", directory_in(checkout, place)?),
        };
        Ok::<String, String>(match (checkout.is_some(), more.is_empty()) {
            (false, true) => format!("{name} = \"{}\"", env!("CARGO_PKG_VERSION")),
            (_, true) => format!("{name} = {{ {at} }}"),
            (_, false) => format!("{name} = {{ {at}, {more} }}"),
        })
    };
    let lines = arguments.template.dependencies().into_iter().map(line);
    Ok(lines.collect::<Result<Vec<_>, String>>()?.join("\n"))
}

/// Returns the directory of a crate of the checkout, in the notation of a manifest.
fn directory_in(checkout: &Path, place: &str) -> Result<String, String> {
    let path = checkout.join(place);
    let found = fs::canonicalize(&path)
        .map_err(|error| format!("{}: {error}; give a complete checkout with --path", path.display()))?;
    let text = found.to_str().filter(|path| !path.contains(['"', '\\', '\n']));
    text.map(str::to_owned)
        .ok_or_else(|| format!("a manifest cannot name {}; move the checkout", found.display()))
}

/// Names that `cargo new` rejects: keywords, and directories of build products.
const RESERVED: &str = "\
    abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return \
    self Self static struct super trait true try type typeof unsafe unsized use virtual where \
    while yield build deps examples incremental";

/// Checks that cargo accepts it as the name of a package, and systemd as that of a unit.
fn check_name(name: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
    if !begins || !name.chars().all(is_word) {
        return Err(format!(
            "{name:?} cannot be the name of a crate; begin with a letter, and continue with letters, digits, `-` and `_`"
        ));
    }
    if RESERVED.split(' ').any(|word| word == name) {
        return Err(format!("{name} is a reserved name; choose a different one, such as my-{name}"));
    }
    // The standard library, and the template's dependencies.
    if ["punctual", "punctual-bridge", "punctual-bare", "core", "std", "alloc", "test", "proc_macro"]
        .contains(&name)
    {
        return Err(format!(
            "{name} is the name of another crate; choose a different one, such as my-{name}"
        ));
    }
    Ok(())
}

/// Make a crate to start from: an app with two tests in virtual time, a systemd unit and a README
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual new my-controller                one control loop
  punctual new my-gimbal --template gimbal  two axes that follow setpoints
  punctual new my-node --template ros2      a control loop with topics for ROS 2
  punctual new my-pi --template raspi4b     a board without operating system
  punctual new my-app --path ~/punctual     with the library of another checkout")]
pub(crate) struct New {
    /// The directory to create; its last component names the crate
    #[arg(value_name = "PATH")]
    directory: PathBuf,

    /// What to start from: an app for Linux, or a board without operating system
    #[arg(long, value_name = "NAME", default_value = "plain", value_parser = Template::parser())]
    template: Template,

    /// The checkout of Punctual that the crate depends on [default: the one this command was built
    /// from; if it was installed from a registry, the released version]
    #[arg(long, value_name = "DIRECTORY")]
    path: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_cargo_names() {
        for name in ["a", "my-controller", "x_2"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "2x", "a b", "é", "a.b", "-x", "punctual", "std"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}

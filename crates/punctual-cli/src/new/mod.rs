//! `punctual new`: a crate to start from.

pub(crate) mod args;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::args::{Board, New, Template};
use crate::output::{print, say};

/// The command line is invalid, or the crate cannot be made there.
const BAD_INPUT: u8 = 2;

/// A file of a crate: its path in it, and its text, in which words such as `@NAME@` are replaced.
type File = (&'static str, &'static str);

/// What crates for Linux share.
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

impl Template {
    /// All files.
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
            Self::Bare => return BARE.to_vec(),
        };
        [&HOSTED, own].concat()
    }

    /// Each crate of ours that it needs: where it lies beside that of the library, its name, and how its line in the manifest goes on.
    fn dependencies(self, board: Board) -> Vec<(&'static str, &'static str, String)> {
        let (library, bridge) = (("", "punctual"), ("../punctual-bridge", "punctual-bridge"));
        let bare = ("../../bare/punctual-bare", "punctual-bare");
        let with = |(place, name): (&'static str, &'static str), more: &str| (place, name, more.to_owned());
        match self {
            Self::Plain | Self::Gimbal => vec![with(library, "")],
            Self::Ros2 => vec![with(library, ""), with(bridge, "features = [\"ros2\"]")],
            Self::Bare => vec![
                with(library, "default-features = false, features = [\"monitoring\"]"),
                with(bare, &format!("features = [\"{}\"]", board.name())),
            ],
        }
    }
}

pub(crate) fn run(arguments: &New) -> ExitCode {
    match make(arguments) {
        Ok(directory) => {
            let directory = directory.display();
            let next = match arguments.template {
                Template::Bare => "cargo run --release --features semihosting",
                _ => "cargo test && cargo run --release",
            };
            print(&format!("{directory} is made; next: cd {directory} && {next}\n"));
            ExitCode::SUCCESS
        }
        Err(message) => {
            say!("error: {message}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Makes the crate, or nothing.
fn make(arguments: &New) -> Result<PathBuf, String> {
    let directory = &arguments.path;
    let shown = directory.display();
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    check_name(name)?;
    if arguments.board.is_some() && arguments.template != Template::Bare {
        return Err(
            "--board is for programs without an operating system; add --template bare, or leave it out"
                .into(),
        );
    }
    let dependencies = dependencies(arguments)?;
    // It must not be there: what is there is somebody's work.
    fs::create_dir(directory).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{shown} is there already; give another name, or remove it"),
        io::ErrorKind::NotFound => format!("{shown}: the directory above it does not exist; make it first"),
        _ => format!("{shown}: {error}"),
    })?;
    let written = write(directory, name, &dependencies, arguments);
    written.map_err(|(path, error)| {
        // Half a crate helps nobody. What cannot be removed is in the message.
        let left = match fs::remove_dir_all(directory) {
            Ok(()) => String::new(),
            Err(_) => format!("; {shown} is incomplete, remove it"),
        };
        format!("{}: {error}{left}", path.display())
    })?;
    Ok(directory.clone())
}

fn write(
    directory: &Path,
    name: &str,
    dependencies: &str,
    arguments: &New,
) -> Result<(), (PathBuf, io::Error)> {
    let node = name.replace('-', "_");
    let board = arguments.board.unwrap_or_default();
    let words = [
        ("@NAME@", name),
        ("@NODE@", &node),
        ("@DEPENDENCIES@", dependencies),
        ("@BOARD@", board.name()),
        ("@TARGET@", board.target()),
        ("@RUNNER@", board.runner()),
    ];
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

/// The lines of the manifest for the crates of ours: by their version, or by their directories.
fn dependencies(arguments: &New) -> Result<String, String> {
    let library = arguments.punctual.as_deref().map(library).transpose()?;
    let line = |(place, name, more): (&str, &str, String)| {
        let at = match &library {
            None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            Some(library) => format!("path = \"{}\"", beside(library, place)?),
        };
        Ok::<String, String>(match (library.is_some(), more.is_empty()) {
            (false, true) => format!("{name} = \"{}\"", env!("CARGO_PKG_VERSION")),
            (_, true) => format!("{name} = {{ {at} }}"),
            (_, false) => format!("{name} = {{ {at}, {more} }}"),
        })
    };
    let lines = arguments.template.dependencies(arguments.board.unwrap_or_default()).into_iter().map(line);
    Ok(lines.collect::<Result<Vec<_>, String>>()?.join("\n"))
}

/// The directory of the library in the working copy, or of the crate, that was given.
fn library(directory: &Path) -> Result<PathBuf, String> {
    let place =
        |path: &Path| path.join("src/lib.rs").is_file().then(|| fs::canonicalize(path).ok()).flatten();
    place(&directory.join("crates/punctual")).or_else(|| place(directory)).ok_or_else(|| {
        format!(
            "--punctual {}: there is neither a crate nor crates/punctual; give the directory of either",
            directory.display()
        )
    })
}

/// The directory of a crate that lies at `place` from the library's, as a manifest has it.
fn beside(library: &Path, place: &str) -> Result<String, String> {
    let path = library.join(place);
    let found = fs::canonicalize(&path)
        .map_err(|error| format!("--punctual: {}: {error}; give a whole working copy", path.display()))?;
    let text = found.to_str().filter(|path| !path.contains(['"', '\\', '\n']));
    text.map(str::to_owned)
        .ok_or_else(|| format!("--punctual: a manifest cannot name {}; move it", found.display()))
}

/// Whether cargo takes it for the name of a package, and systemd for that of a unit.
fn check_name(name: &str) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
    if !begins || !name.chars().all(is_word) {
        return Err(format!(
            "{name:?} cannot be the name of a crate; begin with a letter, and go on with letters, digits, `-` and `_`"
        ));
    }
    // Its own library, and what it depends on.
    if ["punctual", "punctual-bridge", "punctual-bare", "core", "std", "alloc", "test", "proc_macro"]
        .contains(&name)
    {
        return Err(format!(
            "{name} is the name of another crate; choose one of your own, such as my-{name}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_names_that_cargo_takes() {
        for name in ["a", "my-controller", "x_2"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "2x", "a b", "é", "a.b", "-x", "punctual", "std"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}

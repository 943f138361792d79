//! `punctual new`: a crate to start from.

pub(crate) mod args;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::args::{New, Template};
use crate::output::{print, say};

/// The command line is invalid, or the crate cannot be made there.
const BAD_INPUT: u8 = 2;

/// A file of a crate: its path in it, and its text, in which `@NAME@` and `@PUNCTUAL@` are replaced.
type File = (&'static str, &'static str);

const COMMON: [File; 4] = [
    ("Cargo.toml", include_str!("../../templates/common/manifest.toml")),
    ("README.md", include_str!("../../templates/common/readme.md")),
    (".gitignore", include_str!("../../templates/common/gitignore")),
    ("@NAME@.service", include_str!("../../templates/common/unit.service")),
];

impl Template {
    /// The sources.
    fn sources(self) -> &'static [File] {
        match self {
            Self::Plain => &[("src/main.rs", include_str!("../../templates/plain/main.rs"))],
            Self::Gimbal => &[
                ("src/main.rs", include_str!("../../templates/gimbal/main.rs")),
                ("src/axis.rs", include_str!("../../templates/gimbal/axis.rs")),
            ],
        }
    }
}

pub(crate) fn run(arguments: &New) -> ExitCode {
    match make(arguments) {
        Ok(directory) => {
            let directory = directory.display();
            print(&format!(
                "{directory} is made; next: cd {directory} && cargo test && cargo run --release\n"
            ));
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
    let punctual = dependency(arguments.punctual.as_deref())?;
    // It must not be there: what is there is somebody's work.
    fs::create_dir(directory).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{shown} is there already; give another name, or remove it"),
        io::ErrorKind::NotFound => format!("{shown}: the directory above it does not exist; make it first"),
        _ => format!("{shown}: {error}"),
    })?;
    let written = write(directory, name, &punctual, arguments.template);
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
    punctual: &str,
    template: Template,
) -> Result<(), (PathBuf, io::Error)> {
    for (path, text) in COMMON.iter().chain(template.sources()) {
        let path = directory.join(path.replace("@NAME@", name));
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(directory))?;
            let text = text.replace("@NAME@", name).replace("@PUNCTUAL@", punctual);
            fs::File::create_new(&path)?.write_all(text.as_bytes())
        };
        write().map_err(|error| (path.clone(), error))?;
    }
    Ok(())
}

/// How the crate depends on the library: by its version, or by its directory.
fn dependency(directory: Option<&Path>) -> Result<String, String> {
    let Some(directory) = directory else { return Ok(format!("\"{}\"", env!("CARGO_PKG_VERSION"))) };
    let place =
        |path: &Path| path.join("src/lib.rs").is_file().then(|| fs::canonicalize(path).ok()).flatten();
    let found = place(&directory.join("crates/punctual")).or_else(|| place(directory));
    let found = found.ok_or_else(|| {
        format!(
            "--punctual {}: there is neither a crate nor crates/punctual; give the directory of either",
            directory.display()
        )
    })?;
    let text = found.to_str().filter(|path| !path.contains(['"', '\\', '\n']));
    text.map(|path| format!("{{ path = \"{path}\" }}"))
        .ok_or_else(|| format!("--punctual {}: a manifest cannot name it; move it", found.display()))
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
    if ["punctual", "core", "std", "alloc", "test", "proc_macro"].contains(&name) {
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

//! Code shared by the xtask commands and the lab.
//!
//! [`cargo`] builds, [`process`] runs the built programs, [`golden`] compares the behavior of an
//! example with its expected output, [`browser`] opens pages, [`files`] reads sources, and
//! [`scratch`] manages temporary files.

pub mod cargo;
pub mod golden;
pub mod process;
pub mod schema;
pub mod scratch;

use std::error::Error;

/// The result of a command; the error is a message for the user of the command.
pub type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

/// "1 CPU", "2 CPUs".
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Reading source files.
pub mod files {
    use std::fs;
    use std::path::{Path, PathBuf};

    use crate::Result;

    /// Returns the text of a file; an error names the file.
    pub fn read(path: &Path) -> Result<String> {
        Ok(fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    /// Returns the files below a directory with one of these extensions, by path, except build
    /// products. A directory that does not exist has none.
    pub fn below(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry?.path();
                let extension = path.extension().unwrap_or_default();
                if extensions.iter().any(|wanted| extension == *wanted) {
                    found.push(path);
                } else if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                    open.push(path);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn finds_files_below_directory_by_extension() {
            let scratch = crate::scratch::Scratch::new("files-test").unwrap();
            for path in ["a.rs", "b/c.rs", "b/d.txt", "target/e.rs"] {
                let path = scratch.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "text").unwrap();
            }
            let found = below(scratch.path(), &["rs"]).unwrap();
            assert_eq!(found, ["a.rs", "b/c.rs"].map(|path| scratch.path().join(path)));
            assert_eq!(read(&found[0]).unwrap(), "text");
            assert!(read(Path::new("/no/file")).unwrap_err().to_string().starts_with("/no/file: "));
            assert!(below(Path::new("/no/directory"), &["rs"]).unwrap().is_empty());
        }
    }
}

/// A headless browser, which opens pages to test them and draws them for people.
pub mod browser {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use crate::process;

    /// Names of the program in different distributions.
    const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

    /// Returns the browser of this machine, if there is one.
    #[must_use]
    pub fn find() -> Option<&'static str> {
        PROGRAMS.into_iter().find(|program| process::answers(Command::new(program).arg("--version")))
    }

    /// Returns a command that runs `program` without a window, with its profile in `directory`,
    /// until the scripts of a page have run.
    #[must_use]
    pub fn command(program: &str, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg("--virtual-time-budget=2000")
            .arg(format!("--user-data-dir={}", directory.join("profile").display()))
            .env("HOME", directory)
            .stdin(Stdio::null());
        command
    }
}

//! `punctual completions` and `punctual man`: the command line, for shells and for `man`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::{print, say};

/// Print what a shell needs to complete the command line
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual completions bash | sudo tee /usr/share/bash-completion/completions/punctual
  punctual completions zsh > ~/.zfunc/_punctual")]
pub(crate) struct Completions {
    shell: Shell,
}

/// Write a manual page for each command
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  punctual man /usr/local/share/man/man1 && man punctual-top")]
pub(crate) struct Man {
    /// An existing directory
    directory: PathBuf,
}

pub(crate) fn completions(arguments: &Completions, command: &mut Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "punctual", &mut script);
    print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

pub(crate) fn man(arguments: &Man, command: Command) -> ExitCode {
    let directory: &Path = &arguments.directory;
    match clap_mangen::generate_to(command, directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!(
                "error: {}: {error}; give a directory that is there and may be written to",
                directory.display()
            );
            ExitCode::from(2)
        }
    }
}

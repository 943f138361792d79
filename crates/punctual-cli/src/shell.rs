//! `punctual completions` and `punctual man`: the command line, for shells and for `man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::{print, say};
use crate::status::{self, BAD_INPUT};

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
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match write_pages(&command, directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("error: {}: {error}; give an existing directory that can be written", directory.display());
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Writes the pages of a command and its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, directory)?;
    }
    let (name, page) = page(command)?;
    // Other users read the pages, so they have no private mode.
    fs::write(directory.join(name), page)
}

/// Returns the file name and the text of a page.
fn page(command: &Command) -> io::Result<(String, String)> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some((_, examples)) = examples.split_once(":\n").filter(|_| examples.starts_with(EXAMPLES)) {
        page += &format!(".SH EXAMPLES\n.nf\n{}.fi\n", verbatim(examples));
    }
    page += ".SH EXIT STATUS\n";
    for (status, meaning) in status::TABLE {
        page += &format!(".TP\n{status}\n{}", verbatim(meaning));
    }
    Ok((man.get_filename(), page))
}

/// First word of an explanation that consists of examples.
const EXAMPLES: &str = "Example";

/// Escapes lines, so that the page shows them as they are.
fn verbatim(text: &str) -> String {
    let escape = |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-"));
    text.lines().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Punctual;

    /// Returns every command, with its parents.
    fn commands() -> Vec<(String, Command)> {
        fn add(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
            let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
            for subcommand in command.get_subcommands() {
                add(subcommand, &path, all);
            }
            all.push((path, command.clone()));
        }
        let mut command = Punctual::command().disable_help_subcommand(true);
        command.build();
        let mut all = Vec::new();
        add(&command, "", &mut all);
        all
    }

    /// The number that the manual documents, without `--help` and `--version`.
    #[test]
    fn offers_at_most_110_flags() {
        let of = |(path, command): (String, Command)| -> Vec<String> {
            let visible = command.get_arguments().filter(|flag| !flag.is_hide_set());
            let flags = visible.filter_map(|flag| flag.get_long().map(str::to_owned));
            let own = flags.filter(|flag| flag != "help" && flag != "version");
            own.map(|flag| format!("{path} --{flag}")).collect()
        };
        let flags: Vec<String> = commands().into_iter().flat_map(of).collect();
        assert!(flags.len() <= 110, "{} flags: {flags:#?}", flags.len());
    }

    #[test]
    fn help_fits_80_columns() {
        for (path, mut command) in commands() {
            for help in [command.render_help(), command.render_long_help()] {
                for line in help.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{path}: {} columns: {line}", line.chars().count());
                }
            }
        }
    }

    #[test]
    fn pages_show_examples_verbatim() {
        let mut found = 0;
        for (path, command) in commands() {
            let (_, page) = page(&command).unwrap();
            let shown = page.replace("\\-", "-").replace("\\e", "\\");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for example in help.lines().skip(1).filter(|_| help.starts_with(EXAMPLES)) {
                assert!(shown.contains(&format!("\n\\&{example}\n")), "{path}: {example}\n{page}");
                found += 1;
            }
        }
        assert!(found > 60, "{found} examples");
    }
}

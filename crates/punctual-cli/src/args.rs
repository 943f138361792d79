//! The command line.

use clap::{Parser, Subcommand};

use crate::bench::args::Bench;
use crate::check::args::Check;
use crate::doctor::args::Doctor;
use crate::isolate::args::Isolate;
use crate::new::New;
use crate::parameters::args::{Get, Set};
use crate::recover::Recover;
use crate::replay::Replay;
use crate::rta::args::Rta;
use crate::shell::{Completions, Man};
use crate::supervise::Supervise;
use crate::top::args::Top;
use crate::trace::args::Trace;

/// Real-time tasks on Linux: deadlock-free by construction, measured against the clock
#[derive(Debug, Parser)]
#[command(name = "punctual", version, max_term_width = 80, after_help = crate::status::table())]
pub(crate) struct Punctual {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Bench),
    Check(Check),
    Doctor(Doctor),
    Get(Get),
    Isolate(Isolate),
    New(New),
    Recover(Recover),
    Replay(Replay),
    Rta(Rta),
    Set(Set),
    Supervise(Supervise),
    Top(Top),
    Trace(Trace),
    Completions(Completions),
    Man(Man),
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use clap::CommandFactory;
    use xtask_support::{cargo, golden};

    use super::*;

    #[test]
    fn passes_clap_debug_assert() {
        Punctual::command().debug_assert();
    }

    /// The list of the book. `BLESS=1` writes it.
    #[test]
    fn book_lists_all_commands_and_flags() {
        let mut command = Punctual::command();
        command.build();
        let mut list = String::new();
        command.get_subcommands().for_each(|command| describe(command, &mut list));
        let file = cargo::root().join("docs/book/src/reference/cli.txt");
        if let Some(difference) = golden::difference(&file, list.trim_start()) {
            panic!("{difference}");
        }
    }

    /// Appends a command, its arguments and its subcommands, each with its purpose in one line.
    fn describe(command: &clap::Command, list: &mut String) {
        if command.is_hide_set() || command.get_name() == "help" {
            return;
        }
        let positionals: String = command.get_positionals().map(|argument| format!(" {argument}")).collect();
        let name = command.get_bin_name().expect("the command is built");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(list, "\n{name}{positionals}\n  {about}");
        for flag in command.get_arguments().filter(|argument| !argument.is_positional()) {
            if flag.is_hide_set() || matches!(flag.get_id().as_str(), "help" | "version") {
                continue;
            }
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.lines().next().unwrap_or_default();
            let _ = writeln!(list, "  {:<28} {help}", flag.to_string());
        }
        command.get_subcommands().for_each(|command| describe(command, list));
    }
}

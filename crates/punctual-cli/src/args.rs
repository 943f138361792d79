//! The command line.

use clap::{Parser, Subcommand};

use crate::bench::args::Bench;
use crate::check::args::Check;
use crate::doctor::args::Doctor;
use crate::isolate::args::Isolate;
use crate::new::args::New;
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
    use super::*;

    #[test]
    fn passes_clap_debug_assert() {
        use clap::CommandFactory;
        Punctual::command().debug_assert();
    }
}

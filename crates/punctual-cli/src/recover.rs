//! `punctual recover`: completes recordings of killed apps.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use punctual_bridge::{ReadError, recover};
use punctual_report::format::format_counted;

use crate::output::{message, print};
use crate::status::{BAD_INPUT, FINDING};

/// Complete an MCAP recording whose app was killed or whose machine lost power
///
/// The file has no index, so many readers reject it. Its complete chunks, which are written at
/// least every 250 ms, are copied to a new file with an index. FILE is not changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual recover run.mcap               writes run-recovered.mcap
  punctual recover run.mcap whole.mcap")]
pub(crate) struct Recover {
    /// Recording
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// File to create
    #[arg(value_name = "NEW_FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Recover) -> ExitCode {
    let to = arguments.output.clone().unwrap_or_else(|| named_after(&arguments.file));
    match recover(&arguments.file, &to) {
        Ok(recovered) => {
            let messages = format_counted(recovered.messages, "message");
            let (from, damage) = (arguments.file.display(), &recovered.damage);
            print(&format!("{}: {messages}; the end of {from} is lost: {damage}\n", to.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            message!("error: {error}");
            ExitCode::from(if matches!(error, ReadError::Write { .. }) { FINDING } else { BAD_INPUT })
        }
    }
}

/// Returns `run-recovered.mcap` for `run.mcap`.
fn named_after(file: &Path) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push("-recovered.mcap");
    file.with_file_name(name)
}

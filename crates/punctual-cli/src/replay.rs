//! `punctual replay`: runs an app with the inputs of a recording.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use punctual_bridge::check_replay;

use crate::app::{self, App};
use crate::isolate::run::resolve;
use crate::output::print;
use crate::parse::time;
use crate::status::{FINDING, GOOD};

/// The size limit of the verdict.
const VERDICT_BYTES: u64 = 1 << 20;

/// Run an app with the recorded inputs, and compare its messages with the recorded ones
///
/// The app runs in virtual time. Its incoming topics, parameters and recorded event sources get the
/// messages of FILE at their instants, and every published message is compared bit for bit. Later
/// parts of a recording (run-2.mcap, ..) follow by themselves. Exits with status 1 after the first
/// difference of each topic, and if the app ends before the comparison.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  punctual replay run.mcap -- ./my-app
  punctual replay run.mcap -- ./my-app --mcap new.mcap   records the replay")]
pub(crate) struct Replay {
    /// Recording
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Time after which the app is ended
    #[arg(long, value_name = "TIME", default_value = "3600s", value_parser = time)]
    timeout: Duration,

    /// Punctual app
    #[arg(last = true, required = true, value_name = "APP")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Replay) -> Result<u8, String> {
    let Replay { file, timeout, command } = arguments;
    check_replay(file)?;
    resolve(&command[0])?;
    let file = std::path::absolute(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let files =
        app::files().map_err(|error| format!("cannot create a directory for the verdict: {error}"))?;
    let variables: [(&str, &OsStr); 3] = [
        ("PUNCTUAL_PORT", "virtual".as_ref()),
        ("PUNCTUAL_REPLAY", file.as_ref()),
        ("PUNCTUAL_REPLAY_VERDICT", files.verdict.as_ref()),
    ];
    let begun = Instant::now();
    let ended = App::start(command, &variables, Stdio::null()).and_then(|mut app| app.end_after(*timeout));
    let verdict = read(&files.verdict);
    let ended = match ended? {
        Some(status) => status.to_string(),
        None => "it did not end, and was killed".to_owned(),
    };
    let name = command[0].display();
    if begun.elapsed() >= *timeout {
        return Err(format!("{name} did not end within the time limit; set a longer one by --timeout"));
    }
    let Some((word, text)) = verdict else {
        return Err(format!(
            "{name} has not replayed the recording ({ended}); is it an app whose `init` starts a bridge, built \
             with the feature `mcap` of punctual-bridge?"
        ));
    };
    let (text, status) = match &*word {
        "equal" => (text, GOOD),
        "different" => (text, FINDING),
        "invalid" => return Err(text.trim_end().to_owned()),
        _ => (format!("{name} ended before the comparison ({ended})\n"), FINDING),
    };
    print(&text);
    Ok(status)
}

/// Returns the first line of the verdict, and its text.
fn read(path: &Path) -> Option<(String, String)> {
    let bytes = punctual_files::read(path, VERDICT_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split_once('\n').map(|(word, text)| (word.to_owned(), text.to_owned()))
}

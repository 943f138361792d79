//! Arguments of a generated program.

use clap::Parser;

use crate::child::Time;
use crate::script::Script;

/// Runs the apps of this program by random scripts, or by one, and checks each run.
#[derive(Debug, Parser)]
#[command(name = "fuzz-apps")]
pub(super) struct Options {
    /// Seed of the scripts
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,

    /// Number of scripts for each app
    #[arg(long, default_value_t = 1)]
    pub(super) scripts: u64,

    /// Seconds after which no further run starts
    #[arg(long)]
    pub(super) seconds: Option<u64>,

    /// Number of failures after which the program stops
    #[arg(long, default_value_t = 3)]
    pub(super) failures: usize,

    /// Only this app
    #[arg(long)]
    pub(super) app: Option<String>,

    /// One script, as a failure prints it, instead of random ones
    #[arg(long)]
    pub(super) script: Option<Script>,

    /// Only this kind of time
    #[arg(long)]
    pub(super) time: Option<Time>,

    /// Only as this user: root or nobody
    #[arg(long = "user", value_name = "USER", value_parser = is_root)]
    pub(super) privileged: Option<bool>,

    /// Do not shrink a failing script
    #[arg(long)]
    pub(super) as_it_is: bool,
}

fn is_root(user: &str) -> Result<bool, String> {
    match user {
        "root" => Ok(true),
        "nobody" => Ok(false),
        other => Err(format!("the user is root or nobody, not `{other}`")),
    }
}

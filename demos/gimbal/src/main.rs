//! Holds a simulated two-axis camera gimbal at its setpoints, in real time, and reports the quality
//! of control.
//!
//! ```text
//! cargo run --release -p gimbal
//! cargo run --release -p gimbal -- --virtual --seconds 3 --report step.html
//! ```

use std::process::ExitCode;

use clap::Parser;
use gimbal::cli::Args;
use gimbal::program;

fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => program::run(&args),
        Err(message) => program::print_message(&message),
    }
}

//! The gimbal as a process of its own, at the other end of a bus: what `gimbal --spi` controls.
//!
//! ```text
//! chrt -f 90 gimbal-plant /tmp/gimbal.spi &
//! gimbal --spi /tmp/gimbal.spi
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use gimbal::bus;
use gimbal::output::say;

/// Be a simulated gimbal at the other end of a bus, until it is ended by a signal
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Each answer is due within 100 µs: run it at a real-time priority above that of the controller, by `chrt -f 90`.
After a second without commands over a socket it is switched off; the next command finds it at rest."
)]
struct Args {
    /// The socket to be made, which stands for an SPI device; or a device that answers transfers
    path: PathBuf,
}

fn main() -> ExitCode {
    let Args { path } = Args::parse();
    let ready = || say(format_args!("gimbal-plant: ready at {}", path.display()));
    match bus::serve(&path, ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let advice = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "; another gimbal-plant has it, or it is somebody's file: give another name"
                }
                _ => "",
            };
            say(format_args!("gimbal-plant: {}: {error}{advice}", path.display()));
            ExitCode::FAILURE
        }
    }
}

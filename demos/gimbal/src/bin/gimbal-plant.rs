//! The gimbal as a separate process, at the other end of a bus: the device that `gimbal --spi`
//! controls.
//!
//! ```text
//! gimbal-plant /tmp/gimbal.spi &
//! gimbal --spi /tmp/gimbal.spi
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use gimbal::bus;
use gimbal::program::print_line;
use punctual_process::scheduling::{explain_refusal, set_policy};

/// Simulate a gimbal at the other end of a bus, until a signal ends the process
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Each answer is due within 100 µs, so it asks for a real-time priority above that of the controller, and says so if it gets none.
After a second without commands it is switched off; the next command finds it at rest."
)]
struct Args {
    /// The socket to create, which replaces an SPI device; or a device that answers transfers
    path: PathBuf,

    /// The SCHED_FIFO priority of the plant, 1 to 99; 0 requests none
    #[arg(long, value_name = "PRIORITY", default_value = "90")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=99))]
    priority: u8,
}

/// Gives this thread a SCHED_FIFO priority that processes it starts do not inherit.
fn set_priority(priority: u8) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority.into())
}

fn main() -> ExitCode {
    let Args { path, priority } = Args::parse();
    let mut refused = None;
    if priority > 0 {
        refused = set_priority(priority).err();
    }
    let ready = || {
        print_line(format_args!("gimbal-plant: ready at {}", path.display()));
        if let Some(error) = refused {
            print_line(format_args!(
                "gimbal-plant: *** NOT REAL-TIME, ANSWERS MAY BE LATE: no SCHED_FIFO priority {priority}: {}; or \
                 request none by --priority 0 ***",
                explain_refusal(&error)
            ));
        }
    };
    match bus::serve(&path, ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let advice = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "; another gimbal-plant uses it, or it is an unrelated file: give another name"
                }
                _ => "",
            };
            print_line(format_args!("gimbal-plant: {}: {error}{advice}", path.display()));
            ExitCode::FAILURE
        }
    }
}

//! The gimbal as a process of its own, at the other end of a bus: what `gimbal --spi` controls.
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
use gimbal::output::say;
use punctual_process::scheduling::set_policy;

/// Be a simulated gimbal at the other end of a bus, until it is ended by a signal
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Each answer is due within 100 µs, so it asks for a real-time priority above that of the controller, and says so if it gets none.
After a second without commands it is switched off; the next command finds it at rest."
)]
struct Args {
    /// The socket to be made, which stands for an SPI device; or a device that answers transfers
    path: PathBuf,

    /// The priority of SCHED_FIFO at which it answers, 1 to 99; 0 asks for none
    #[arg(long, value_name = "PRIORITY", default_value = "90")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=99))]
    priority: u8,
}

/// Gives this thread a priority of SCHED_FIFO, which no process that it might start inherits.
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
        say(format_args!("gimbal-plant: ready at {}", path.display()));
        if let Some(error) = refused {
            say(format_args!(
                "gimbal-plant: *** NOT REAL-TIME, ANSWERS MAY BE LATE: no SCHED_FIFO priority {priority}: {error}; run it as root, grant \
                 CAP_SYS_NICE or raise RLIMIT_RTPRIO, or ask for none: --priority 0 ***"
            ));
        }
    };
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

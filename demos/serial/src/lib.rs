//! A drive on a serial line, controlled by Modbus RTU: a crate to copy for serial protocols.
//!
//! The task `cycle` sends a request on the grid, and the task `receive` is bound to the port. An
//! answer that is missing at the next release is counted; after [`MAX_FAILURES`] failed exchanges
//! in a row the app stops. [`simulated`] is the drive's end of a pseudoterminal.

pub mod modbus;
pub mod simulated;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{ControlModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Address of the drive.
pub const DEVICE: u8 = 1;
/// Failed exchanges in a row, after which the app stops.
pub const MAX_FAILURES: u32 = 100;
/// Longest step of the target between two exchanges, in increments of the encoder.
pub const MAX_STEP: u16 = 100;

/// Counts of exchanges, and the drive's last position.
#[derive(Debug, Default)]
pub struct Counts {
    /// Valid answers.
    pub answers: AtomicU64,
    /// Requests without a valid answer before the next one.
    pub failures: AtomicU64,
    /// Answers with a wrong check sum, address or function.
    pub rejected: AtomicU64,
    /// Last position, in increments of the encoder.
    pub position: AtomicU64,
}

/// Task of the controller: positions the drive, and stops after some answers.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// Wanted position, in increments of the encoder.
    pub position: u16,
    /// Number of answers after which the app ends.
    pub answers: u64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// The controller.
#[punctual::app(main = false)]
pub mod app {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use punctual::prelude::*;

    use super::modbus::{self, ANSWER_BYTES};
    use super::{Counts, DEVICE, Goal, MAX_FAILURES, MAX_STEP, count};

    /// State of the current exchange.
    #[derive(Debug, Default)]
    pub struct Exchange {
        received: [u8; ANSWER_BYTES],
        length: usize,
        is_open: bool,
        failures: u32,
        target: u16,
    }

    #[shared]
    struct Shared {
        exchange: Exchange,
    }

    #[local]
    struct Local {
        input: File,
        output: File,
        sender: Arc<Counts>,
        receiver: Arc<Counts>,
        goal: Goal,
    }

    #[init]
    fn init(_: init::Context, port: File, counts: Arc<Counts>, goal: Goal) -> (Shared, Local) {
        let output = port.try_clone().expect("a descriptor is free");
        let (sender, receiver) = (Arc::clone(&counts), counts);
        (Shared { exchange: Exchange::default() }, Local { input: port, output, sender, receiver, goal })
    }

    #[task(period = 10.millis(), priority = 2, local = [output, sender], shared = [exchange])]
    fn cycle(mut cx: cycle::Context) {
        let counts = cx.local.sender;
        let (target, has_failed) = cx.shared.exchange.lock(|exchange| {
            if exchange.is_open {
                count(&counts.failures);
                exchange.failures += 1;
            }
            (exchange.length, exchange.is_open) = (0, true);
            (exchange.target, exchange.failures >= MAX_FAILURES)
        });
        // The port does not block: a request that the driver does not take has no answer.
        let _ = cx.local.output.write_all(&modbus::request(DEVICE, target));
        if has_failed {
            punctual::shutdown();
        }
    }

    #[task(binds = input, priority = 1, local = [input, receiver, goal], shared = [exchange])]
    fn receive(mut cx: receive::Context) {
        let mut bytes = [0; 64];
        // An error, as of a removed adapter, leaves the exchange without an answer.
        let length = cx.local.input.read(&mut bytes).unwrap_or(0);
        let (counts, goal) = (cx.local.receiver, *cx.local.goal);
        cx.shared.exchange.lock(|exchange| {
            // Bytes between two exchanges belong to none.
            if !exchange.is_open {
                return;
            }
            let taken = length.min(ANSWER_BYTES - exchange.length);
            exchange.received[exchange.length..][..taken].copy_from_slice(&bytes[..taken]);
            exchange.length += taken;
            if exchange.length < ANSWER_BYTES || taken == 0 {
                return;
            }
            match modbus::parse_answer(DEVICE, &exchange.received) {
                Ok(position) => {
                    (exchange.is_open, exchange.failures) = (false, 0);
                    let step = goal.position.abs_diff(position).min(MAX_STEP);
                    let is_below = position < goal.position;
                    exchange.target = if is_below { position + step } else { position - step };
                    counts.position.store(position.into(), Relaxed);
                    count(&counts.answers);
                }
                // The next request discards the rest.
                Err(_) => count(&counts.rejected),
            }
        });
        if counts.answers.load(Relaxed) >= goal.answers {
            punctual::shutdown();
        }
    }
}

/// Opens a port for raw bytes: 8 data bits, no parity, one stop bit, at this rate. Calls do not
/// block.
///
/// # Errors
/// Returns an error if the port cannot be opened, or has no such rate.
pub fn open(path: &Path, baud: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let port = rustix::fs::open(path, flags, Mode::empty())?;
    let mut settings: Termios = tcgetattr(&port)?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.control_modes -= ControlModes::CSTOPB | ControlModes::CRTSCTS;
    settings.set_speed(baud)?;
    tcsetattr(&port, OptionalActions::Flush, &settings)?;
    Ok(port.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use punctual::Config;

    use super::*;
    use crate::simulated::{Drive, Faults};

    fn run(faults: Faults, goal: Goal) -> Arc<Counts> {
        let (drive, port) = Drive::start(faults).unwrap();
        let counts = Arc::<Counts>::default();
        let _alone = test_skip::alone();
        // Longer than the test takes on any machine.
        let config = Config::new().until(Duration::from_secs(120));
        app::run(config, port, Arc::clone(&counts), goal).unwrap();
        drive.join();
        counts
    }

    #[test]
    fn moves_drive_to_goal_despite_lost_and_corrupted_answers() {
        let goal = Goal { position: 2_000, answers: 100 };
        let counts = run(Faults { lost: 7, corrupted: 5 }, goal);
        let load = |count: &AtomicU64| count.load(Relaxed);
        assert_eq!((load(&counts.answers), load(&counts.position)), (100, 2_000));
        // A busy machine may add some.
        assert!(load(&counts.failures) >= 20 && load(&counts.rejected) >= 15, "{counts:?}");
    }

    #[test]
    fn stops_if_drive_does_not_answer() {
        let counts = run(Faults { lost: 1, corrupted: 0 }, Goal { position: 9, answers: 1 });
        assert_eq!(counts.answers.load(Relaxed), 0);
        assert_eq!(counts.failures.load(Relaxed), u64::from(MAX_FAILURES));
    }
}

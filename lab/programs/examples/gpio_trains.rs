//! Sends trains of pulses at several periods, and reports which pulses are answered and how long
//! each seems to last: the test of section III.A.5 of Cunningham, for any responder.
//!
//!     gpio_trains COUNT PERIOD_US...
//!
//! The module `punctual_pulses` sends them in interrupt context, without waiting for answers. The
//! responder measures the time between two pulses as the time between its answers: if it keeps up,
//! that is the period. A pulse without an answer is missed. A responder that takes longer than half
//! a second also misses pulses.

use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use punctual_lab::{Result, word};

const USAGE: &str = "COUNT PERIOD_US..., as in 4096 20 40 160 1000 2000";

const DEVICE: &str = "/dev/punctual-pulses";

/// The time limit for the answers to the last pulses.
const EDGE_TIMEOUT: Duration = Duration::from_millis(500);

fn main() -> Result {
    let mut words = env::args().skip(1).peekable();
    let count: u32 = word(USAGE, &mut words)?;
    let mut periods: Vec<u32> = vec![word(USAGE, &mut words)?];
    while words.peek().is_some() {
        periods.push(word(USAGE, &mut words)?);
    }
    for period_us in periods {
        let train = Train::send(count, period_us)
            .map_err(|error| format!("{DEVICE}: {count} pulses every {period_us} us: {error}"))?;
        println!("{period_us} us: {train}");
    }
    Ok(())
}

/// The result of a train of pulses.
struct Train {
    sent: u64,
    /// The time of each answer, in ns.
    answers: Vec<u64>,
}

impl Train {
    fn send(count: u32, period_us: u32) -> Result<Self> {
        let mut device = File::options().read(true).write(true).open(DEVICE)?;
        let period_ns = u64::from(period_us) * 1000;
        device.write_all(format!("{period_ns} {count}").as_bytes())?;
        thread::sleep(EDGE_TIMEOUT);
        // From the start: the write moved no offset.
        let mut bytes = Vec::new();
        device.read_to_end(&mut bytes)?;
        let mut numbers = bytes.as_chunks().0.iter().map(|&number| u64::from_ne_bytes(number));
        let sent = numbers.next().ok_or("the module says nothing")?;
        Ok(Self { sent, answers: numbers.collect() })
    }
}

impl std::fmt::Display for Train {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let answered = self.answers.len() as u64;
        let missed = self.sent.saturating_sub(answered);
        write!(f, "{} sent, {missed} missed, {answered} answered", self.sent)?;
        let lengths: Vec<u64> = self.answers.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
        let (Some(longest), Some(shortest)) = (lengths.iter().max(), lengths.iter().min()) else {
            return Ok(());
        };
        #[allow(clippy::cast_precision_loss)]
        let (mean, deviation) = {
            let count = lengths.len() as f64;
            let mean = lengths.iter().sum::<u64>() as f64 / count;
            let squares = lengths.iter().map(|&length| (length as f64 - mean).powi(2)).sum::<f64>();
            (mean, (squares / count).sqrt())
        };
        write!(
            f,
            "; apart: longest {longest} ns, mean {mean:.0} ns, deviation {deviation:.0} ns, shortest {shortest} ns"
        )
    }
}

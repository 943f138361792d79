//! Sends pulses to a GPIO line and measures the latency of the answers on another one: the
//! instrument of the latency test in section 6.1 of Balciunas, for any responder.
//!
//!     gpio_pulses CHIP OUT IN COUNT PERIOD_US
//!
//! A pulse is sent at each instant of an absolute grid. The latency is the time from right before
//! the line is set to the instant at which the kernel handles the answer's edge. The responder must
//! have a higher priority than this program, or another CPU.

use std::env;
use std::time::Duration;

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, Value};
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use punctual_lab::{Result, end, word};

const USAGE: &str = "CHIP OUT IN COUNT PERIOD_US, as in /dev/gpiochip0 17 27 100 1000";

/// Answers that take longer count as missing.
const EDGE_TIMEOUT: Duration = Duration::from_secs(1);

fn main() -> Result {
    let mut words = env::args().skip(1);
    let chip: String = word(USAGE, &mut words)?;
    let (output, input): (u32, u32) = (word(USAGE, &mut words)?, word(USAGE, &mut words)?);
    let (count, period_us): (usize, u32) = (word(USAGE, &mut words)?, word(USAGE, &mut words)?);
    end(USAGE, words)?;

    let mut wanted = Request::builder();
    wanted.with_consumer("gpio_pulses").on_chip(&chip).with_line(input).as_input();
    let answers = wanted.with_edge_detection(EdgeDetection::RisingEdge).request()?;
    let mut wanted = Request::builder();
    wanted.with_consumer("gpio_pulses").on_chip(&chip).with_line(output).as_output(Value::Inactive);
    let line = wanted.request()?;

    let mut latencies = Vec::with_capacity(count);
    let mut missing = 0;
    let mut next = now_ns();
    for _ in 0..count {
        next += u64::from(period_us) * 1000;
        sleep_until(next)?;
        let sent = now_ns();
        line.set_value(output, Value::Active)?;
        if answers.wait_edge_event(EDGE_TIMEOUT)? {
            latencies.push(answers.read_edge_event()?.timestamp_ns.saturating_sub(sent));
        } else {
            missing += 1;
        }
        line.set_value(output, Value::Inactive)?;
    }
    latencies.sort_unstable();
    println!("{} pulses answered, {missing} not", latencies.len());
    if let [least, .., most] = latencies.as_slice() {
        let median = latencies[latencies.len() / 2];
        println!("latency: longest {most} ns, median {median} ns, shortest {least} ns");
    }
    if missing > 0 { Err("answers are missing or late".into()) } else { Ok(()) }
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn sleep_until(ns: u64) -> Result {
    let until =
        Timespec { tv_sec: i64::try_from(ns / 1_000_000_000)?, tv_nsec: i64::try_from(ns % 1_000_000_000)? };
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

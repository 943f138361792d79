//! A CPU without Linux: taking and returning it many times, and a round trip to it compared with
//! one between two CPUs of Linux.
//!
//!     amp cycles IMAGE CPU TIMES
//!     amp exchange IMAGE CPU ROUNDS
//!
//! The image for `cycles` is any that runs until it is asked to end; the image for `exchange`
//! answers by the module `exchange`.

#[path = "../src/amp/exchange.rs"]
mod exchange;

use std::env;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_isolate::change::{Journal, Live, Store};
use punctual_isolate::isolate::JOURNAL;
use punctual_isolate::offline::{Device, Image, Options, State, give_up};
use punctual_lab::{Result, word};
use rustix::thread::{CpuSet, sched_setaffinity};

use exchange::{Exchange, answer_to};

const USAGE: &str = "cycles|exchange IMAGE CPU TIMES, as in cycles periodic 2 100";

/// The number of polls for an answer, which take some seconds.
const LOOKS: u64 = 500_000_000;

/// The time for which the host of an emulated machine may stall.
const OPTIONS: Options = Options { timeout: Duration::from_secs(30), grace: Duration::from_secs(10) };

fn main() -> Result {
    let mut words = env::args().skip(1);
    let what: String = word(USAGE, &mut words)?;
    let path: String = word(USAGE, &mut words)?;
    let cpu: usize = word(USAGE, &mut words)?;
    let times: usize = word(USAGE, &mut words)?;
    let image = Image::read(&fs::read(&path)?)?;
    match what.as_str() {
        "cycles" => cycles(&image, cpu, times),
        "exchange" => compare(&image, cpu, times),
        other => Err(format!("`{other}` does not fit; the arguments are {USAGE}").into()),
    }
}

/// The system from which CPUs are taken.
struct System {
    store: Store,
    settings: Live,
    /// The journal of the CPU that was taken. While it exists, no other process brings the CPU
    /// online.
    journal: Option<Journal>,
}

impl System {
    /// Starts a program on a CPU without Linux, and waits until it runs.
    fn start(&mut self, image: &Image, cpu: usize) -> Result<Device> {
        let mut device = Device::open()?;
        self.journal = Some(give_up(cpu, &self.store, &mut self.settings)?);
        device.start(image, cpu, OPTIONS)?;
        while device.state() == State::Loaded {
            std::hint::spin_loop();
        }
        Ok(device)
    }

    /// Ends the program, and returns the CPU.
    fn stop(&mut self, device: Device) -> Result {
        device.stop()?;
        let State::Ended(0) = device.state() else {
            return Err(format!("it was {:?}", device.state()).into());
        };
        drop(device);
        let undone = self.store.undo(JOURNAL, &mut self.settings)?.ok_or("there is no journal")?;
        self.journal = None;
        if undone.left.is_empty() { Ok(()) } else { Err(format!("left: {:?}", undone.left).into()) }
    }
}

fn cycles(image: &Image, cpu: usize, times: usize) -> Result {
    let mut system = System { store: Store::system(), settings: Live::system(), journal: None };
    let (mut starts, mut stops) = (Vec::new(), Vec::new());
    for cycle in 0..times {
        let begun = Instant::now();
        let device = system.start(image, cpu).map_err(|error| format!("start {cycle}: {error}"))?;
        starts.push(begun.elapsed());
        // Sometimes rings while the program ends; Linux must not receive that interrupt.
        let ring = cycle % 3 == 0;
        if ring {
            device.ring()?;
        }
        let begun = Instant::now();
        system.stop(device).map_err(|error| format!("stop {cycle}: {error}"))?;
        stops.push(begun.elapsed());
    }
    println!("{times} cycles");
    println!("start: {}", summary(&mut starts));
    println!("giving back: {}", summary(&mut stops));
    Ok(())
}

fn compare(image: &Image, cpu: usize, rounds: usize) -> Result {
    let mut system = System { store: Store::system(), settings: Live::system(), journal: None };
    pin((cpu + 1) % thread::available_parallelism()?.get())?;
    let (mut between, mut linux_to_bare) = (Vec::new(), Vec::new());
    // Alternating, so that disturbances of this machine affect both.
    for _ in 0..3 {
        linux(cpu, rounds, &mut between)?;
        let device = system.start(image, cpu)?;
        // SAFETY: the memory is mapped as long as the device exists, is zero since the device was
        // opened anew, and both sides access it only by this type.
        let exchange = unsafe { &*device.memory().cast::<Exchange>() };
        ask(exchange, rounds, &mut linux_to_bare)?;
        system.stop(device)?;
    }
    println!("two CPUs of Linux: {}", summary(&mut between));
    println!("Linux and a CPU without: {}", summary(&mut linux_to_bare));
    Ok(())
}

/// The same between two CPUs of Linux.
fn linux(cpu: usize, rounds: usize, took: &mut Vec<Duration>) -> Result {
    // SAFETY: zero is the empty state.
    let exchange: Box<Exchange> = unsafe { Box::new(std::mem::zeroed()) };
    let (ready, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let pinned = pin(cpu).map_err(|error| error.to_string());
            ready.store(true, Ordering::Release);
            let mut server = exchange.server();
            while !ended.load(Ordering::Relaxed) {
                server.answer();
            }
            pinned
        });
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let asked = ask(&exchange, rounds, took);
        ended.store(true, Ordering::Relaxed);
        server.join().map_err(|_| "the thread that answers has panicked")??;
        asked
    })
}

fn ask(exchange: &Exchange, rounds: usize, took: &mut Vec<Duration>) -> Result {
    let mut client = exchange.client();
    for round in 0..rounds as u64 {
        let begun = Instant::now();
        let answer = client.ask(round, LOOKS).ok_or("no answer came")?;
        took.push(begun.elapsed());
        if answer != answer_to(round) {
            return Err(format!("{answer} is not the answer to {round}").into());
        }
    }
    Ok(())
}

fn pin(cpu: usize) -> Result {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Summarizes durations, longest first.
fn summary(took: &mut [Duration]) -> String {
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 1000];
    format!("max {:?}, p99 {:?}, p50 {:?}, p10 {:?}, min {:?}", at(1000), at(990), at(500), at(100), at(0))
}

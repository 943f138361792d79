//! Measures the cost and the losses of recording scheduler entries and exits by BPF programs.
//!
//! `cargo bench -p punctual-trace --features bpf --bench schedule [-- ROUNDS]`, on machines with
//! usable tracefs and BPF. A pair of threads on each CPU wakes each other as fast as it can. In
//! alternating seconds the scheduler events are recorded without and with the programs, so that
//! other load affects both equally. The difference of the time per turn, divided by the records per
//! turn, is the cost of a record. Then the load is limited to about 100 000 and 200 000 records per
//! second.

mod load;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::{BURSTS, drain_time, pair};
use punctual_trace::event::Kind;
use punctual_trace::read::Trace;
use punctual_trace::record::{Config, Group, Recorded, Recording};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A turn has two switches on its CPU, each with an entry and an exit.
const TURN_RECORDS: u64 = 4;

fn main() -> ExitCode {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("schedule-bench-{}", std::process::id()));
    let result = cost(&place, rounds)
        .and_then(|()| [100_000, 200_000].into_iter().try_for_each(|rate| steady(&place, rate)));
    let _ = fs::remove_dir_all(&place);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Results of a period of load under a recording.
struct Stretch {
    seconds: f64,
    turns: u64,
    /// Number of scheduler entries and exits.
    records: u64,
    /// CPU time of the recorder's threads, in s.
    drained: f64,
    summary: Recorded,
}

fn stretch(place: &Path, groups: &[Group], time: Duration, burst: usize) -> Result<Stretch> {
    let _ = fs::remove_dir_all(place);
    let recording = Recording::start(Config { groups: groups.to_vec(), ..Config::default() }, place)?;
    if let Some(absent) = recording.absent().iter().find(|absent| absent.group == Group::Schedule) {
        return Err(absent.to_string().into());
    }
    let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let cpus = std::thread::available_parallelism()?.get();
    let pairs: Vec<_> = (0..cpus).flat_map(|cpu| pair(cpu, burst, stop.clone(), turns.clone())).collect();
    let start = Instant::now();
    sleep(time);
    // Relaxed, here and below: it is a counter, and the threads end when they see the flag, at any
    // later time.
    let (seconds, turns) = (start.elapsed().as_secs_f64(), turns.load(Ordering::Relaxed));
    let drained = drain_time();
    stop.store(true, Ordering::Relaxed);
    let summary = recording.stop()?;
    for thread in pairs {
        thread.join().map_err(|_| "a thread of the load panicked")?;
    }
    let mut records = 0;
    for event in Trace::open(place)?.events()? {
        records += u64::from(matches!(event?.kind, Kind::ScheduleEnter | Kind::ScheduleExit));
    }
    Ok(Stretch { seconds, turns, records, drained, summary })
}

fn lost(summary: &Recorded) -> u64 {
    summary.losses.iter().map(|cpu| cpu.lost).sum()
}

/// Returns the increase of the time per turn that the programs cause.
fn cost(place: &Path, rounds: u32) -> Result {
    let cpus = std::thread::available_parallelism()?.get() as f64;
    let mut turn = [const { Vec::new() }; 2];
    let (mut records, mut turns, mut gone) = (0, 0, 0);
    for _ in 0..rounds {
        for (with, groups) in [&[Group::Sched][..], &[Group::Sched, Group::Schedule]].into_iter().enumerate()
        {
            let one = stretch(place, groups, Duration::from_secs(1), usize::MAX)?;
            turn[with].push(one.seconds * cpus * 1e9 / one.turns as f64);
            gone += lost(&one.summary);
            if with == 1 {
                (records, turns) = (records + one.records, turns + one.turns);
            }
        }
    }
    let records = records as f64 / turns as f64;
    let [without, with] = turn.map(|mut turn| {
        turn.sort_by(f64::total_cmp);
        turn[turn.len() / 2]
    });
    println!(
        "a turn takes {without:.0} ns without and {with:.0} ns with {records:.1} records (medians of {rounds}): {:.0} ns a record; \
         {gone} events lost",
        (with - without) / records
    );
    Ok(())
}

/// Returns the CPU time to transfer `rate` records per second.
fn steady(place: &Path, rate: u64) -> Result {
    let cpus = std::thread::available_parallelism()?.get();
    let burst = (rate / TURN_RECORDS / BURSTS) as usize / cpus;
    let [without, with] = [&[Group::Sched][..], &[Group::Sched, Group::Schedule]]
        .map(|groups| stretch(place, groups, Duration::from_secs(5), burst));
    let (without, with) = (without?, with?);
    let share = |stretch: &Stretch| 100.0 * stretch.drained / stretch.seconds;
    println!(
        "{:.0} records/s beside {:.0} other events/s: {:.2} % of a CPU to move all, {:.2} % without the records; {} lost",
        with.records as f64 / with.seconds,
        (with.summary.losses.iter().map(|cpu| cpu.read).sum::<u64>() - with.records) as f64 / with.seconds,
        share(&with),
        share(&without),
        lost(&with.summary)
    );
    Ok(())
}

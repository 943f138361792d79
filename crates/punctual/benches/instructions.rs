//! What spawning and locking take in instructions, by valgrind's callgrind: the same on a busy machine.
//!
//! `RUSTFLAGS=--cfg=rustix_use_libc cargo bench -p punctual --bench instructions`: valgrind does not get on with how rustix
//! calls the vDSO otherwise. The apps are those of the bench `executor`, without monitoring and in virtual time. Each
//! figure is the difference of two runs, one with more operations than the other, by their number; the loop is in it.

use std::env;
use std::process::Command;

#[macro_use]
#[path = "support/apps.rs"]
mod apps;

use apps::Operation;
use punctual::Config;

app!(plain, false, false, false);
app!(monitored, true, false, false);
app!(profile, false, false, true);

type Measure = fn(Config, Operation, u64) -> std::time::Duration;

const ROWS: [(&str, Operation, Measure); 13] = [
    ("spawn to run, same level", Operation::SameLevel, plain::measure),
    ("spawn to run, higher level", Operation::HigherLevel, plain::measure),
    ("wake of an async task of a higher level", Operation::Wake, plain::measure),
    ("arm + cancel", Operation::ArmAndCancel, plain::measure),
    ("spawn to run, same level, 1000 timers armed", Operation::SameLevelTimed(1000), plain::measure),
    (
        "spawn to run, same level, 1000 timers armed, monitored",
        Operation::SameLevelTimed(1000),
        monitored::measure,
    ),
    ("lock + unlock, shared with a higher task", Operation::Lock, plain::measure),
    ("lock + unlock, shared with nobody", Operation::LockAlone, plain::measure),
    ("spawn to run, same level, monitored", Operation::SameLevel, monitored::measure),
    ("spawn to run, higher level, monitored", Operation::HigherLevel, monitored::measure),
    ("spawn to run, higher level, could be profiled", Operation::HigherLevel, profile::measure),
    ("lock + unlock, shared with a higher task, could be profiled", Operation::Lock, profile::measure),
    ("lock + unlock, shared with nobody, could be profiled", Operation::LockAlone, profile::measure),
];

const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

fn main() {
    let words: Vec<String> = env::args().collect();
    if let [_, row, iterations] = &*words
        && let (Ok(row), Ok(iterations)) = (row.parse::<usize>(), iterations.parse())
    {
        let (_, operation, measure) = ROWS[row];
        measure(Config::new().virtual_time(), operation, iterations);
        return;
    }
    for (row, (name, ..)) in ROWS.into_iter().enumerate() {
        let (few, many) = (instructions(row, FEW), instructions(row, MANY));
        println!("{name}: {:.1} instructions", (many - few) as f64 / (MANY - FEW) as f64);
    }
}

/// The instructions of a whole run.
fn instructions(row: usize, iterations: u64) -> u64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(env::current_exe().expect("a program knows where it is"));
    let output = command.args([row.to_string(), iterations.to_string()]).output();
    let output = output.unwrap_or_else(|error| panic!("valgrind is not installed: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).unwrap_or_else(|| panic!("valgrind failed:\n{said}"))
}

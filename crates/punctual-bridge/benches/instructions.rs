//! Instructions for publishing and for reading parameters, by valgrind's callgrind: independent of
//! other load.
//!
//! `cargo bench -p punctual-bridge --bench instructions`. Each figure is the difference of two runs
//! with different numbers of operations, divided by the difference of these numbers; it includes
//! the loop.

use std::env;
use std::hint::black_box;
use std::process::Command;

use punctual::Instant;
use punctual_bridge::message::Layout;
use punctual_bridge::{
    Incoming, IncomingReader, Message, Parameters, Publisher, Topic, Tunable, TunableReader,
};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};

/// 64 bytes.
#[derive(Clone, Copy, Message)]
struct State {
    values: [f64; 8],
}

const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

static ROOMY: Topic<State, 16_384> = Topic::new("/roomy");
static FULL: Topic<State, 16> = Topic::new("/full");

/// Also 64 bytes.
#[derive(Clone, Copy, Parameters)]
struct Gains {
    #[parameter(nested)]
    pan: Axis,
    #[parameter(nested)]
    tilt: Axis,
}

#[derive(Clone, Copy, Parameters)]
struct Axis {
    #[parameter(default = 1.0, range = 0.0..=10.0)]
    kp: f64,
    #[parameter(default = 1.0, range = 0.0..=10.0)]
    ki: f64,
    #[parameter(default = 1.0, range = 0.0..=10.0)]
    kd: f64,
    #[parameter(default = 1.0, range = 0.0..=10.0)]
    limit: f64,
}

static GAINS: Tunable<Gains> = Tunable::new();

static WANTED: Incoming<State> = Incoming::new("/wanted", State { values: [0.0; 8] });

type Measure = fn(u64);

const ROWS: [(&str, Measure); 5] = [
    ("publish 64 bytes", |times| publish(ROOMY.publisher().expect("it is free"), times)),
    ("publish 64 bytes into a full ring", |times| publish(FULL.publisher().expect("it is free"), times)),
    ("read 64 bytes of parameters", |times| read(GAINS.reader().expect("it is free"), times)),
    ("read 64 received bytes", |times| read_times(WANTED.reader().expect("it is free"), times)),
    ("receive 64 bytes, and read them", take),
];

#[inline(never)]
fn publish<const N: usize>(mut end: Publisher<State, N>, times: u64) {
    let state = State { values: [0.5; 8] };
    for number in 0..times {
        end.publish(Instant::from_ticks(number), black_box(state));
    }
}

#[inline(never)]
fn read(mut end: TunableReader<Gains>, times: u64) {
    for _ in 0..times {
        black_box(end.read());
    }
}

#[inline(never)]
fn read_times(mut end: IncomingReader<State>, times: u64) {
    for _ in 0..times {
        black_box(end.read());
    }
}

/// In a real app a transport thread does this, except for the reading.
#[inline(never)]
fn take(times: u64) {
    let (mut end, mut reader) =
        (WANTED.subscribe().expect("it is free"), WANTED.reader().expect("it is free"));
    let bytes = [&[0, 1, 0, 0], [0.5_f64; 8].map(f64::to_le_bytes).as_flattened()].concat();
    for _ in 0..times {
        end.take(black_box(&bytes), Layout::Cdr, &"a benchmark").expect("it is a message");
        black_box(reader.read());
    }
}

fn main() {
    let words: Vec<String> = env::args().collect();
    if let [_, row, times] = &*words
        && let (Ok(row), Ok(times)) = (row.parse::<usize>(), times.parse())
    {
        ROWS[row].1(times);
        return;
    }
    for (row, (name, _)) in ROWS.into_iter().enumerate() {
        let (few, many) = (instructions(row, FEW), instructions(row, MANY));
        println!("{name}: {:.1} instructions", (many - few) as f64 / (MANY - FEW) as f64);
    }
}

/// Returns the instructions of a whole run.
fn instructions(row: usize, times: u64) -> u64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(env::current_exe().expect("a program knows where it is"));
    let output = command.args([row.to_string(), times.to_string()]).output_within(TEST_LIMIT);
    let output = output.unwrap_or_else(|error| panic!("valgrind is not installed: {error}"));
    let printed = String::from_utf8_lossy(&output.stderr);
    let collected = printed.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).unwrap_or_else(|| panic!("valgrind failed:\n{printed}"))
}

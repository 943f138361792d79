//! Faults of each transport as the helper process of an app with a task of 10 kHz.
//!
//! ```text
//! transport-proof [--seconds N] [NAME ...]
//! ```
//!
//! In every pair of windows of two seconds the first one is undisturbed, and the second one begins
//! with a fault. Misses are attributed to the fault if they are more numerous in the windows with
//! faults, by slots of half a second, than chance explains, twice in a row. At the end every
//! published message must have been taken by the transport, or counted as lost.
//!
//! The program runs in a network namespace with loopback only, with the programs `punctual-ros1`
//! (if `rosmaster` is installed), `punctual-ros2` and `punctual-zenoh` from its own directory. The
//! task has the highest CPU, which everything else leaves.

mod app;
mod faults;
#[path = "../../punctual-ros2/tests/ros2/junk.rs"]
mod junk;
mod statistics;
#[path = "../../support/transport.rs"]
mod transport;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use faults::{Fault, Target};
use punctual_process::child::BoundedCommand;
use statistics::probability;
use transport::{Process, worker_of};

/// The number of slots of a window.
const WINDOW_SLOTS: u64 = 4;
/// The least probability of misses that are not attributed to a fault.
const MIN_PROBABILITY: f64 = 0.001;
/// The time limit for a transport to come back and take the messages.
const RETURN_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The variable of a process in its network namespace.
const IS_ALONE: &str = "PUNCTUAL_PROOF_IS_ALONE";
const MASTER_PORT: u16 = 11311;

/// Faults of transports next to an app of 10 kHz
#[derive(Parser)]
struct Options {
    /// Seconds for each fault of each transport, without start and end
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Run the app NAME on a CPU with a program as its transport, for this program itself
    #[arg(long, num_args = 3, value_names = ["NAME", "CPU", "PROGRAM"], hide = true)]
    app: Option<Vec<String>>,
    /// Transports: ros1, ros2, zenoh; all by default
    names: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some([name, cpu, program]) = options.app.as_deref() {
        let mut transport = Command::new(program);
        transport.arg(name).stdin(Stdio::null());
        let cpu = cpu.parse().expect("this program has written the number");
        app::run(cpu, app::Setup { name: name.clone(), transport });
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(IS_ALONE).is_none() {
        return run_alone();
    }
    let all = ["ros1", "ros2", "zenoh"];
    if let Some(unknown) = options.names.iter().find(|name| !all.contains(&name.as_str())) {
        eprintln!("{unknown:?} is not a transport; they are {}", all.join(", "));
        return ExitCode::from(2);
    }
    let is_wanted = |name: &&&str| options.names.is_empty() || options.names.iter().any(|one| one == **name);
    let cpu = leave_highest_cpu();
    let pairs = (options.seconds * 1_000_000_000 / (2 * WINDOW_SLOTS * app::SLOT_NS)).max(1);
    let mut failures = 0;
    for name in all.iter().filter(is_wanted) {
        let master = if *name == "ros1" { Some(master()) } else { None };
        if matches!(master, Some(None)) {
            println!("ros1: skipped, because rosmaster is not installed");
            continue;
        }
        for fault in Fault::of(name) {
            failures += u32::from(!examine(name, cpu, fault, pairs));
        }
    }
    println!("{failures} failures");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program again in a network namespace.
fn run_alone() -> ExitCode {
    let this = std::env::current_exe().expect("a program knows where it is");
    let up = "ip link set lo up && ip link set lo multicast on && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", up, "sh"]).arg(this).args(std::env::args_os().skip(1));
    command.env(IS_ALONE, "1").env_remove("ROS_DOMAIN_ID").env_remove("RMW_IMPLEMENTATION");
    command.env("ROS_MASTER_URI", format!("http://127.0.0.1:{MASTER_PORT}")).env("ROS_IP", "127.0.0.1");
    command.env("ROS_LOG_DIR", std::env::temp_dir().join("punctual-proof"));
    // It replaces this process.
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    eprintln!("cannot run `unshare -n`: {error}; run as root with util-linux installed");
    ExitCode::from(2)
}

/// Leaves the highest CPU to the app, and returns its number: a network stack that sends and
/// receives on the CPU of a real-time task delays it, and so would any other kernel work.
fn leave_highest_cpu() -> usize {
    let mut cpus = sched_getaffinity(None).expect("a process may read its CPUs");
    let highest = (0..CpuSet::MAX_CPU).rev().find(|cpu| cpus.is_set(*cpu)).expect("this runs on a CPU");
    if cpus.count() > 1 {
        cpus.unset(highest);
        sched_setaffinity(None, &cpus).expect("a process may have fewer CPUs");
    }
    highest
}

/// Starts a master of ROS 1, if one is installed.
fn master() -> Option<Process> {
    // It ends with this program, as the app does at the end of its input.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "rosmaster", "--core", "-p", &MASTER_PORT.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let probe = Command::new("rosmaster").arg("--help").output_within(RETURN_TIMEOUT);
    probe.is_ok().then(|| {
        let master = Process::start(&mut command);
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", MASTER_PORT)).is_err() {
            assert!(begun.elapsed() < RETURN_TIMEOUT, "rosmaster does not come up");
            sleep(POLL_INTERVAL);
        }
        master
    })
}

/// The app with its transport.
struct App {
    process: Process,
    stdin: ChildStdin,
}

impl App {
    fn start(name: &str, cpu: usize, program: &PathBuf) -> Self {
        let this = std::env::current_exe().expect("a program knows where it is");
        // It inherits the CPUs of this process, which has left that of the app.
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &format!("0-{cpu}")]).arg(this).args(["--app", name, &cpu.to_string()]);
        command.arg(program).stdin(Stdio::piped());
        let mut process = Process::start_transport(&mut command);
        let stdin = process.child.stdin.take().expect("it is piped");
        Self { process, stdin }
    }

    fn ask(&mut self, request: &str) -> Vec<u64> {
        writeln!(self.stdin, "{request}").expect("the app runs");
        let word = request.split(' ').next().unwrap_or_default();
        let answer = self.process.wait_for(&format!("+{word} "));
        answer.split(' ').skip(1).filter_map(|number| number.parse().ok()).collect()
    }

    /// Returns the transport, once its worker runs.
    fn target(&mut self, name: &str, app: &str) -> Option<Target> {
        let begun = Instant::now();
        while begun.elapsed() < RETURN_TIMEOUT {
            let process = self.ask("process")[0] as u32;
            if let Some(worker) = worker_of(process) {
                let (transport, app) = (name.to_owned(), app.to_owned());
                return Some(Target { transport, app, supervisor: process.cast_signed(), worker });
            }
            sleep(POLL_INTERVAL);
        }
        None
    }

    /// Begins `disturb` at the start of a slot, adds the figures of the window, and returns the
    /// number of messages that `disturb` has published.
    fn watch(&mut self, figures: &mut Figures, disturb: impl FnOnce() -> u64) -> u64 {
        let present = self.ask("slot")[0];
        let wait_for = |app: &mut Self, slot: u64| {
            while app.ask("slot")[0] < slot {
                sleep(POLL_INTERVAL);
            }
        };
        wait_for(self, present + 1);
        self.ask("longest");
        let published = disturb();
        let end = self.ask("slot")[0].max(present + WINDOW_SLOTS);
        wait_for(self, end + 1);
        figures.misses.extend(self.ask(&format!("misses {} {}", present + 1, end + 1)));
        figures.longest_ns = self.ask("longest")[0].max(figures.longest_ns);
        published
    }
}

/// The figures of all windows of a kind.
#[derive(Default)]
struct Figures {
    /// The number of misses in each slot.
    misses: Vec<u64>,
    /// The maximum response time, in ns.
    longest_ns: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, misses) = (self.misses.len(), self.misses.iter().sum::<u64>());
        let affected = self.misses.iter().filter(|misses| **misses > 0).count();
        let longest_us = self.longest_ns as f64 / 1e3;
        write!(f, "{misses} misses in {affected} of {all} slots, maximum {longest_us:.0} us")
    }
}

/// Examines a fault of a transport; returns `false` after a failure.
fn examine(name: &str, cpu: usize, fault: Fault, pairs: u64) -> bool {
    let is_attributable = |attempt: u64| {
        let (probability, is_counted) = observe(name, cpu, fault, pairs * attempt);
        (probability < MIN_PROBABILITY, is_counted)
    };
    match is_attributable(1) {
        (_, false) => false,
        (false, true) => true,
        (true, true) => {
            println!("{name}, {fault}: more misses than by chance; observed again, twice as long");
            let (is_attributable, is_counted) = is_attributable(2);
            if is_attributable {
                println!("{name}, {fault}: FAILED: deadline misses are attributed to the fault");
            }
            !is_attributable && is_counted
        }
    }
}

/// Returns the probability of the misses without an effect of the fault, and `true` if every
/// message was counted.
fn observe(name: &str, cpu: usize, fault: Fault, pairs: u64) -> (f64, bool) {
    let app_name = format!("proof-{}", std::process::id());
    let this = std::env::current_exe().expect("a program knows where it is");
    let mut app = App::start(&app_name, cpu, &this.with_file_name(format!("punctual-{name}")));
    app.ask("publish");
    let (mut control, mut faulty) = (Figures::default(), Figures::default());
    let (mut deaths, mut flooded) = (0, 0);
    let mut target = app.target(name, &app_name);
    for _ in 0..pairs {
        let Some(present) = &target else { break };
        app.watch(&mut control, || 0);
        flooded += app.watch(&mut faulty, || fault.inject(present));
        let next = app.target(name, &app_name);
        deaths += u64::from(next.as_ref().is_none_or(|next| next.worker != present.worker));
        target = next;
    }
    app.ask("pause");
    let begun = Instant::now();
    let (published, taken, lost) = loop {
        let counts = app.ask("count");
        if counts[0] == counts[1] + counts[2] || begun.elapsed() >= RETURN_TIMEOUT {
            break (counts[0], counts[1], counts[2]);
        }
        sleep(POLL_INTERVAL);
    };
    let probability = probability(&faulty.misses, &control.misses);
    println!(
        "{name}, {fault}: {faulty}; without {control}; p = {probability:.4}; {published} published, \
         {taken} taken, {lost} lost; {deaths} restarts"
    );
    drop(app.stdin);
    let ended = app.process.wait_for("+ended ");
    let ended: Vec<u64> = ended.split(' ').filter_map(|number| number.parse().ok()).collect();
    let mut is_counted = true;
    let mut fail = |reason: String| {
        println!("{name}, {fault}: FAILED: {reason}");
        is_counted = false;
    };
    if taken + lost != published {
        fail(format!("{} messages are not counted", published.abs_diff(taken + lost)));
    }
    if ended[..2] != [published, 0] {
        fail(format!("the app has carried {} messages and lost {}", ended[0], ended[1]));
    }
    if ended[2] != flooded {
        fail(format!("{} of {flooded} messages of the flood are not counted", flooded.abs_diff(ended[2])));
    }
    if target.is_none() {
        fail("the transport has not returned".to_owned());
    }
    if fault.kills() && deaths == 0 {
        fail("the transport has not died".to_owned());
    }
    if !app.process.status().success() {
        fail("the app has failed".to_owned());
    }
    (probability, is_counted)
}

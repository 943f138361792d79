//! The CPU of a partition: its selection, its use by jobs, and its entry in the report.

use std::process::Command;

use punctual::Config;

use crate::partitions::{allowed, end, ends_with, two_cpus};
use crate::{privileges, process};
use test_skip::{Need, skip};

#[punctual::app(main = false, partitions = [one, two])]
pub(crate) mod app {
    use std::os::unix::net::UnixStream;

    use super::inspect;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        line: UnixStream,
        other_end: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, other_end) = UnixStream::pair().expect("sockets can be made");
        first::spawn().unwrap();
        (Shared {}, Local { line, other_end })
    }

    #[task(core = one, priority = 2)]
    fn first(_: first::Context) {
        inspect("one");
        second::spawn().unwrap();
    }

    #[task(core = two, priority = 3, local = [other_end])]
    fn second(_: second::Context) {
        inspect("two");
        waits::spawn().unwrap();
    }

    #[task(core = two, priority = 1)]
    async fn waits(_: waits::Context) {
        inspect("two");
        edge::pend();
    }

    #[task(core = two, binds = line, priority = 2, local = [line])]
    fn edge(_: edge::Context) {
        inspect("two");
        punctual::shutdown();
    }
}

/// Prints the allowed CPUs and the current CPU of the calling job.
fn inspect(partition: &str) {
    // SAFETY: the call takes no pointers.
    let here = unsafe { libc::sched_getcpu() };
    println!("LOOK {partition} is on {here} of {:?}", allowed());
}

/// Environment variable with the program's own choice of CPUs, `-` for none.
const CHOICE: &str = "CHOICE";

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    let choice = std::env::var(CHOICE).unwrap_or_default();
    let config = choice
        .split(',')
        .filter_map(|entry| entry.split_once('='))
        .fold(Config::from_env(), |config, (name, cpu)| {
            config.partition_cpu(name, cpu.parse().expect("the tests give numbers"))
        });
    let report = app::run(config).expect("the app starts");
    for thread in &report.settings.threads {
        println!("THREAD {} on {}", thread.thread, thread.cpus);
    }
    println!("NOTES {:?}", report.settings.notes);
}

/// Runs the program with its own and the environment's choice, and checks the CPUs.
fn runs(mut command: Command, choice: String, environment: Option<String>, one: usize, two: usize) {
    command.env(CHOICE, choice);
    if let Some(environment) = environment {
        command.env("PUNCTUAL_CPU", environment);
    }
    let ended = end(command);
    ends_with(
        &ended,
        0,
        &[
            &format!("LOOK one is on {one} of [{one}]"),
            &format!("LOOK two is on {two} of [{two}]"),
            &format!("THREAD one level 2 on {one}\n"),
            &format!("THREAD two level 3 on {two}\n"),
            &format!("THREAD two level 1 on {two}\n"),
            &format!("THREAD two event edge on {two}\n"),
            &format!("THREAD two event async on {two}\n"),
            // `idle` belongs to the first partition.
            &format!("THREAD idle on {one}\n"),
        ],
    );
    let observations = ended.output.lines().filter(|line| line.starts_with("LOOK two"));
    assert!(
        observations.clone().count() >= 3
            && observations.clone().all(|line| line.ends_with(&format!("[{two}]")))
    );
}

#[test]
fn environment_overrides_pinning_by_name() {
    let Some([low, high]) = two_cpus() else { return };
    let _alone = crate::alone();
    let plain: fn() -> Command = || process::program("partitions::cpus::program");
    let unprivileged: fn() -> Command =
        || privileges::unprivileged(&process::program("partitions::cpus::program"));
    for program in [unprivileged, plain] {
        runs(program(), format!("one={low},two={high}"), None, low, high);
        runs(program(), format!("one={high},two={low}"), None, high, low);
        // A partition that is listed twice.
        runs(program(), format!("one={low},two={low},one={high}"), None, high, low);
        runs(program(), format!("one={low},two={high}"), Some(format!("one={high},two={low}")), high, low);
        runs(program(), String::new(), Some(format!(" two = {high} , one={low}")), low, high);
    }
}

#[test]
fn unspecified_cpu_is_highest_free_one() {
    let cpus = allowed();
    let Some([low, _]) = two_cpus() else { return };
    // An isolated CPU comes first, wherever it is.
    let isolated = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    if !isolated.trim().is_empty() {
        return skip(Need::System("a machine without isolated CPUs"), "the CPUs that are chosen");
    }
    let _alone = crate::alone();
    let program = || process::program("partitions::cpus::program");
    let [next, highest] = [cpus[cpus.len() - 2], cpus[cpus.len() - 1]];
    runs(program(), String::new(), None, highest, next);
    runs(program(), format!("one={low}"), None, low, highest);
    runs(program(), format!("two={highest}"), None, next, highest);
}

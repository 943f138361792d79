//! CPUs that are not available: the message, the exit code, and that no code of the app has run.

use std::os::unix::process::CommandExt;
use std::process::Command;

use punctual::{Config, Report, StartError};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::partitions::{allowed, end, ends_with, two_cpus};
use crate::process;

/// An app that prints when it starts.
macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($one:tt)*], [$($two:tt)*]) => {
        #[punctual::app(main = false, $($args)*)]
        pub(crate) mod $name {
            #[shared]
            struct Shared {}

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                println!("INIT");
                punctual::shutdown();
                (Shared {}, Local {})
            }

            #[task($($one)*)]
            fn first(_: first::Context) {}

            #[task($($two)*)]
            fn second(_: second::Context) {}
        }
    };
}

app!(parts, [partitions = [one, two]], [core = one], [core = two]);
app!(same, [partitions = [one(cpu = 0), two(cpu = 0)]], [core = one], [core = two]);
app!(absent, [partitions = [one(cpu = 9_999), two]], [core = one], [core = two]);
app!(global, [executor = "global"], [], [priority = 2]);
app!(sole, [], [], [priority = 2]);
app!(polls, [partitions = [one(poll), two]], [core = one], [core = two]);
app!(only_polls, [partitions = [one(poll)]], [], [priority = 2]);

type Run = fn(Config) -> Result<Report, StartError>;

/// Environment variable that selects the app.
const APP: &str = "APP";

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    let apps: [(&str, Run); 8] = [
        ("parts", |config| parts::run(config)),
        ("same", |config| same::run(config)),
        ("absent", |config| absent::run(config)),
        ("global", |config| global::run(config)),
        ("sole", |config| sole::run(config)),
        ("polls", |config| polls::run(config)),
        ("only polls", |config| only_polls::run(config)),
        ("high", |config| parts::run(config.priority_base(99))),
    ];
    let name = std::env::var(APP).expect("the other tests set it");
    let (_, run) = apps.into_iter().find(|(app, _)| *app == name).expect("the tests know the apps");
    process::exit(punctual::export::main(run));
}

fn program_of(app: &str, cpus: Option<&str>) -> Command {
    let mut command = process::program("partitions::refusals::program");
    command.env(APP, app);
    if let Some(cpus) = cpus {
        command.env("PUNCTUAL_CPU", cpus);
    }
    command
}

/// Restricts it to this CPU, like `taskset`.
fn confine(command: &mut Command, cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // SAFETY: between fork and exec the closure makes a system call and nothing else.
    unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &set)?)) };
}

#[track_caller]
fn is_refused(command: Command, words: &[&str]) {
    let ended = end(command);
    ends_with(&ended, 2, words);
    assert!(ended.output.contains("punctual: "), "{}", ended.output);
    assert!(!ended.output.contains("INIT"), "nothing of it runs:\n{}", ended.output);
}

#[track_caller]
fn starts(command: Command) {
    ends_with(&end(command), 0, &["INIT"]);
}

#[test]
fn rejects_missing_cpu() {
    let _alone = crate::alone();
    let words = ["there is no CPU 9999 for the partition `one`", "`one(cpu = …)`", "PUNCTUAL_CPU=one=…"];
    is_refused(program_of("absent", None), &words);
    is_refused(program_of("parts", Some("one=9999")), &words);
    let Some([low, high]) = two_cpus() else { return };
    starts(program_of("absent", Some(&format!("one={low}"))));
    let mut confined = program_of("parts", Some(&format!("two={high}")));
    confine(&mut confined, low);
    let words = [
        format!("there is no CPU {high} for the partition `two`; choose one of {low} "),
        "Config::partition_cpu".into(),
    ];
    is_refused(confined, &words.each_ref().map(String::as_str));
}

#[test]
fn one_cpu_for_two_partitions() {
    let _alone = crate::alone();
    if allowed().contains(&0) {
        let words = ["the partitions `one` and `two` are both to be on CPU 0; give one of them another CPU"];
        is_refused(program_of("same", None), &words);
        is_refused(program_of("parts", Some("one=0,two=0")), &words);
    }
    let Some([low, high]) = two_cpus() else { return };
    starts(program_of("same", Some(&format!("one={low},two={high}"))));
}

#[test]
fn fewer_cpus_than_partitions() {
    let _alone = crate::alone();
    let cpu = allowed()[0];
    let mut command = program_of("parts", None);
    confine(&mut command, cpu);
    let needs =
        format!("each of the partitions one, two needs its own CPU, but this process may use only {cpu};");
    is_refused(command, &[&needs, "allow it more CPUs", "taskset", "fewer partitions"]);
    // Levels of the global executor share the available CPUs.
    let mut command = program_of("global", None);
    confine(&mut command, cpu);
    starts(command);
}

#[test]
fn no_cpu_left_next_to_polled_ones() {
    let _alone = crate::alone();
    let cpu = allowed()[0];
    let mut command = program_of("only polls", None);
    confine(&mut command, cpu);
    let polls = format!("`one` polls, which occupies its CPU, but this process may use only {cpu};");
    is_refused(command, &[&polls, "allow it another CPU", "remove `poll`"]);
    let mut command = program_of("polls", None);
    confine(&mut command, cpu);
    is_refused(command, &["each of the partitions one, two needs its own CPU"]);
}

#[test]
fn rejects_undeclared_partition() {
    let _alone = crate::alone();
    let words = ["a CPU is given for a partition `three`, but those of the app are one, two", "PUNCTUAL_CPU"];
    is_refused(program_of("parts", Some("three=0")), &words);
    is_refused(program_of("sole", Some("three=0")), &["partition `three`, but those of the app are main"]);
    is_refused(program_of("global", Some("one=0")), &["a partition `one`, but the app has no partitions"]);
    starts(program_of("sole", Some(&format!("main={}", allowed()[0]))));
}

#[test]
fn a_cpu_without_a_partition() {
    let _alone = crate::alone();
    let words =
        ["CPU 0 is given without a partition, but the app has one, two; name one", "PUNCTUAL_CPU=NAME=CPU"];
    is_refused(program_of("parts", Some("0")), &words);
    let words = ["CPU 0 is given, but the app runs on every CPU", "restrict the process instead"];
    is_refused(program_of("global", Some("0")), &words);
    starts(program_of("sole", Some(&allowed()[0].to_string())));
}

#[test]
fn contradicting_keys() {
    let _alone = crate::alone();
    for cpus in ["one=", "one", "=1", "one=1,", "one=1;two=0", "one:1"] {
        let words =
            format!("PUNCTUAL_CPU={cpus} is invalid; set it to the number of a CPU, or to NAME=CPU,…");
        is_refused(program_of("parts", Some(cpus)), &[&words]);
    }
}

#[test]
fn priorities_outside_kernel_range() {
    let _alone = crate::alone();
    if two_cpus().is_some() {
        is_refused(
            program_of("high", None),
            &["with priority base 99, level 1 would have kernel priority 100"],
        );
    }
}

#[test]
fn rejected_run_leaves_app_unchanged() {
    let Some([low, high]) = two_cpus() else { return };
    let _alone = crate::alone();
    let config = |two| Config::new().partition_cpu("one", low).partition_cpu("two", two);
    for _ in 0..2 {
        let refused = parts::run(config(low)).expect_err("both are on one CPU");
        assert_eq!(refused.exit_code(), 2);
        assert!(parts::second::spawn().is_err());
        parts::run(config(high)).expect("the app starts");
    }
}

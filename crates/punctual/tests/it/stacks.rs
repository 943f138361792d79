//! Stacks: of the requested size, large enough by default, measured, and an overflow that names the
//! task.

use std::env;

use crate::process::Ended;
use crate::{privileges, process};
use punctual::report::Report;
use punctual::{Config, StartError};
use test_skip::{Need, skip};

/// Uses `kib` KiB of the stack, and then runs `inside` on top.
#[inline(never)]
pub(crate) fn take(kib: usize, inside: impl FnOnce()) {
    fn more(kib: usize, inside: &mut dyn FnMut()) {
        let frame = [1_u8; 1024];
        std::hint::black_box(&frame);
        match kib {
            0 => inside(),
            _ => more(kib - 1, inside),
        }
        std::hint::black_box(&frame);
    }
    let mut inside = Some(inside);
    more(kib, &mut || inside.take().expect("it is called once")());
}

/// The maximum number of levels, each with a frame of 100 KiB, each called by the one below.
macro_rules! nested {
    ($($priority:literal $task:ident: $next:ident,)*) => {
        #[punctual::app(main = false)]
        mod nested {
            use super::take;

            #[shared]
            struct Shared {}

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context) -> (Shared, Local) {
                level_1::spawn().unwrap();
                (Shared {}, Local {})
            }

            $(
                #[task(priority = $priority)]
                fn $task(_: $task::Context) {
                    take(100, || $next::spawn().unwrap());
                }
            )*

            #[task(priority = 28)]
            fn level_28(_: level_28::Context) {
                take(100, punctual::shutdown);
            }
        }
    };
}

#[rustfmt::skip]
nested! {
    1 level_1: level_2, 2 level_2: level_3, 3 level_3: level_4, 4 level_4: level_5, 5 level_5:
    level_6, 6 level_6: level_7, 7 level_7: level_8, 8 level_8: level_9, 9 level_9: level_10, 10
    level_10: level_11, 11 level_11: level_12, 12 level_12: level_13, 13 level_13: level_14, 14
    level_14: level_15, 15 level_15: level_16, 16 level_16: level_17, 17 level_17: level_18, 18
    level_18: level_19, 19 level_19: level_20, 20 level_20: level_21, 21 level_21: level_22, 22
    level_22: level_23, 23 level_23: level_24, 24 level_24: level_25, 25 level_25: level_26, 26
    level_26: level_27, 27 level_27: level_28,
}

/// The culprit of a stack overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Low,
    High,
    Idle,
    /// None; some of the stack is used.
    Nobody,
    /// None; a null pointer is dereferenced.
    Null,
}

const ALL: [Who; 5] = [Who::Low, Who::High, Who::Idle, Who::Nobody, Who::Null];

macro_rules! app {
    ($name:ident, [$($args:tt)*], [$($core:tt)*]) => {
        #[punctual::app(main = false $($args)*)]
        pub(crate) mod $name {
            use super::{Who, take};

            #[shared]
            struct Shared {
                who: Who,
            }

            #[local]
            struct Local {}

            #[init]
            fn init(_: init::Context, who: Who) -> (Shared, Local) {
                if who != Who::Idle {
                    low::spawn().unwrap();
                }
                (Shared { who }, Local {})
            }

            #[idle(shared = [&who])]
            fn idle(cx: idle::Context) {
                if *cx.shared.who == Who::Idle {
                    take(usize::MAX, || ());
                }
            }

            #[task(priority = 1, shared = [&who] $($core)*)]
            fn low(cx: low::Context) {
                match cx.shared.who {
                    Who::Low => take(usize::MAX, || ()),
                    Who::Null => super::follow_null(),
                    _ => take(300, || high::spawn().unwrap()),
                }
            }

            #[task(priority = 2, shared = [&who] $($core)*)]
            fn high(cx: high::Context) {
                if *cx.shared.who == Who::High {
                    take(usize::MAX, || ());
                }
                take(200, punctual::shutdown);
            }
        }
    };
}

app!(one, [], []);
app!(asked, [, stack = 1536.kib()], []);
app!(polls, [, partitions = [a(poll)]], [, core = a]);
app!(global, [, executor = "global"], []);

pub(crate) fn follow_null() {
    let nowhere = std::hint::black_box(std::ptr::null::<u8>());
    // SAFETY: none; this ends the process, which the test is about.
    std::hint::black_box(unsafe { nowhere.read_volatile() });
}

/// Partitions with an explicit size, and one without.
#[punctual::app(main = false, stack = 3 * MIB, partitions = [own(stack = 1.mib()), other])]
mod two {
    const MIB: usize = 1 << 20;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        punctual::shutdown();
        (Shared {}, Local {})
    }

    #[task(core = own)]
    fn a(_: a::Context) {}

    #[task(core = other)]
    fn b(_: b::Context) {}
}

/// Returns the size and the usage of the stack of the thread with that name.
#[track_caller]
fn stack(report: &Report, thread: &str) -> (Option<usize>, Option<usize>) {
    let found = report.settings.threads.iter().find(|settings| settings.thread == thread);
    let found = found.unwrap_or_else(|| panic!("no thread {thread} in {report}"));
    (found.stack, found.stack_used)
}

/// Returns the stack sizes that a program prints. In a separate process, because glibc gives a
/// thread the stack of one that has ended, if it is large enough.
fn sizes(app: &str, case: usize, environment: Option<&str>) -> String {
    let mut command = process::program(&format!("stacks::programs::{app}"));
    privileges::no_runaways(&mut command);
    command.env("CASE", case.to_string());
    // Without priorities the thread of `idle`, which is the program's, may run the jobs.
    command.env("RUST_MIN_STACK", (16 << 20).to_string());
    if let Some(stack) = environment {
        command.env("PUNCTUAL_STACK", stack);
    }
    let ended = process::start(command).end();
    let line = ended.output.lines().find_map(|line| line.strip_prefix("SIZES "));
    line.unwrap_or_else(|| panic!("{}", ended.output)).to_owned()
}

#[test]
fn default_levels_fit_above_lowest_priority() {
    assert_eq!(sizes("deepest", 0, None), "8.0 2.0");
    let _alone = crate::alone();
    // In virtual time all jobs are on the caller's stack, and without priorities they may be: the
    // caller chooses it.
    let run = |config| {
        let body = || nested::run(config).expect("the app starts");
        let caller = std::thread::Builder::new().stack_size(8 << 20).spawn(body);
        caller.expect("threads can be started").join().expect("it does not panic")
    };
    let report = run(Config::new());
    if privileges::real_time() {
        let used = stack(&report, "level 1").1.expect("it is measured");
        assert!((28 * 100 * 1024..28 * 256 * 1024).contains(&used), "{report}");
    }
    let report = run(Config::new().virtual_time());
    assert!(report.settings.threads.is_empty(), "nothing is measured of it");
}

#[test]
fn report_shows_memory_use() {
    let _alone = crate::alone();
    for config in [Config::new(), Config::new().stack(4 << 20)] {
        // `low` uses 300 KiB, and when it calls `high`, another 200.
        let report = one::run(config, Who::Nobody).expect("the app starts");
        let used = stack(&report, "level 1").1.expect("it is measured");
        // Without priorities both may have run on the thread of `idle`.
        let least = if privileges::real_time() { 500 } else { 1 };
        assert!((least * 1024..900 * 1024).contains(&used), "{report}");
        let above = stack(&report, "level 2").1.expect("it is measured");
        assert!(above > 0 && above < 500 * 1024, "{report}");
        assert_eq!(stack(&report, "idle"), (None, None), "it is the caller's");
        assert!(report.to_string().contains("unknown"), "{report}");
    }
}

#[test]
fn environment_overrides_stack_sizes() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        skip(Need::TwoCpus, "stacks of two partitions");
        return;
    }
    for (case, (_, expected)) in cases().into_iter().enumerate() {
        assert_eq!(sizes("sizes", case, None), expected);
    }
    assert_eq!(sizes("sizes", 2, Some("own=2048")), "2.0 5.0");
    assert_eq!(sizes("sizes", 2, Some("6144")), "6.0 6.0");
    assert_eq!(sizes("one_size", 0, None), "1.5");
}

/// Sizes that a program requests, and the results in MiB.
fn cases() -> [(Config, &'static str); 4] {
    [
        (Config::new(), "1.0 3.0"),
        (Config::new().stack(5 << 20), "5.0 5.0"),
        (Config::new().stack(5 << 20).partition_stack("own", 4 << 20), "4.0 5.0"),
        (Config::new().partition_stack("other", 4 << 20), "1.0 4.0"),
    ]
}

#[test]
fn rejects_invalid_settings_with_remedy() {
    let error = two::run(Config::new().partition_stack("mine", 1 << 20)).expect_err("there is none");
    assert!(matches!(error, StartError::StackOfUnknownPartition { .. }), "{error}");
    assert!(error.to_string().contains("those of the app are own, other"), "{error}");
    for config in [Config::new().stack(1000), Config::new().stack(1000).virtual_time()] {
        let error = two::run(config).expect_err("it is too small");
        assert!(
            error.to_string().contains("1000 bytes is too small; give each thread at least 64 KiB"),
            "{error}"
        );
        assert_eq!(error.exit_code(), 2);
    }
    for value in ["8M", "-1", "99999999999999999999", "18446744073709551615", "a=b"] {
        let words = format!("PUNCTUAL_STACK={value} is invalid; set it to a number of KiB");
        let printed = sizes("sizes", 0, Some(value));
        assert!(printed.contains(&words), "{printed}");
    }
}

/// Runs a program with and without privileges.
fn each(app: &str, who: Who, port: &str) -> [Ended; 2] {
    let mut program = process::program(&format!("stacks::programs::{app}"));
    program.env("WHO", format!("{who:?}")).env("PUNCTUAL_PORT", port).env("PUNCTUAL_STACK", "1024");
    privileges::with_and_without(program).map(|mut command| {
        // A core dump is useless here.
        privileges::limit(&mut command, privileges::Resource::Core, 0, 0);
        process::start(command).end()
    })
}

#[test]
fn stack_overflow_names_task_level_and_thread() {
    for app in ["one", "polls", "global"] {
        for (who, words) in [
            (Who::Low, "punctual: `low` at level 1 has used up the stack of "),
            (Who::High, "punctual: `high` at level 2 has used up the stack of "),
            (Who::Idle, "punctual: idle has used up the stack of idle's thread "),
        ] {
            for port in ["linux", "virtual"] {
                for ended in each(app, who, port) {
                    let what = format!("{app}, {who:?}, {port}: {}", ended.output);
                    assert_eq!(ended.code, -libc::SIGABRT, "{what}");
                    assert!(ended.output.contains(words), "no `{words}`, {what}");
                    assert!(ended.output.contains("has overflowed its stack"), "Rust's own message, {what}");
                    let fix =
                        if ended.output.contains("stack of idle") { "ulimit -s" } else { "PUNCTUAL_STACK" };
                    assert!(ended.output.contains(fix), "{what}");
                }
            }
        }
    }
}

#[test]
fn passes_other_faults_to_earlier_handler() {
    for ended in each("one", Who::Null, "linux") {
        assert_eq!(ended.code, -libc::SIGSEGV, "{}", ended.output);
        assert!(!ended.output.contains("used up"), "{}", ended.output);
    }
    for ended in each("handles", Who::Null, "linux") {
        assert_eq!(ended.code, 77, "{}", ended.output);
    }
    for ended in each("handles", Who::Low, "linux") {
        assert_eq!(ended.code, 77, "{}", ended.output);
        assert!(ended.output.contains("`low` at level 1 has used up"), "{}", ended.output);
    }
}

mod programs {
    use super::*;

    fn who() -> Who {
        process::chosen("WHO", ALL)
    }

    macro_rules! program {
        ($name:ident) => {
            #[test]
            #[ignore = "a program that the other tests run"]
            fn $name() {
                process::exit(punctual::export::main(|config| crate::stacks::$name::run(config, who())));
            }
        };
    }

    program!(one);
    program!(polls);
    program!(global);

    /// With the program's own handler of the signal.
    #[test]
    #[ignore = "a program that the other tests run"]
    fn handles() {
        extern "C" fn handler(_: libc::c_int) {
            // SAFETY: the call takes no pointers and does not return.
            unsafe { libc::_exit(77) }
        }
        // SAFETY: the handler is async-signal-safe.
        unsafe { libc::signal(libc::SIGSEGV, handler as *const () as usize) };
        process::exit(punctual::export::main(|config| crate::stacks::one::run(config, who())));
    }

    fn case() -> Config {
        let case: usize =
            env::var("CASE").ok().and_then(|case| case.parse().ok()).expect("the other tests set it");
        cases()[case].0.clone()
    }

    fn mib(report: &Report, thread: &str) -> f64 {
        stack(report, thread).0.map_or(f64::NAN, |size| size as f64 / f64::from(1 << 20))
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn sizes() {
        match two::run(case()) {
            Ok(report) => {
                println!("SIZES {:.1} {:.1}", mib(&report, "own level 1"), mib(&report, "other level 1"))
            }
            Err(error) => println!("SIZES {error}"),
        }
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn one_size() {
        let report = asked::run(case(), Who::Nobody).expect("the app starts");
        println!("SIZES {:.1}", mib(&report, "level 1"));
    }

    #[test]
    #[ignore = "a program that the other tests run"]
    fn deepest() {
        let report = nested::run(case()).expect("the app starts");
        println!("SIZES {:.1} {:.1}", mib(&report, "level 1"), mib(&report, "level 28"));
    }
}

//! Interactions of a polling partition: descriptors, calls, the other partition, and its end.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use punctual::Config;
use punctual::report::Outcome;

use crate::process;

mod events {
    /// Eventfds of a task of the polling partition, and one that an async task there waits for.
    #[punctual::app(partitions = [other, fast(poll)], main = false)]
    pub(super) mod app {
        use std::io::ErrorKind;
        use std::os::fd::OwnedFd;

        use punctual::prelude::*;
        use rustix::event::{EventfdFlags, eventfd};

        #[shared]
        struct Shared {
            left: u32,
        }

        #[local]
        struct Local {
            event: OwnedFd,
            trigger: OwnedFd,
        }

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            let event =
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfds can be made");
            let trigger = event.try_clone().expect("descriptors can be duplicated");
            waits::spawn().unwrap();
            send::spawn().unwrap();
            (Shared { left: 21 }, Local { event, trigger })
        }

        #[task(core = other, local = [trigger])]
        fn send(cx: send::Context) {
            rustix::io::write(&*cx.local.trigger, &1_u64.to_ne_bytes()).expect("there is room in the count");
        }

        #[task(core = fast, binds = event, priority = 2, local = [event], shared = [left])]
        fn received(mut cx: received::Context) {
            let mut count = [0; 8];
            if rustix::io::read(&*cx.local.event, &mut count).is_err() {
                // It was pended, by the previous job.
                return;
            }
            cx.shared.left.lock(|left| match *left {
                0 | 1 => punctual::shutdown(),
                _ => {
                    *left -= 1;
                    send::spawn().ok();
                }
            });
        }

        #[task(core = fast, shared = [left])]
        async fn waits(mut cx: waits::Context) {
            let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("sockets can be made");
            let refused = punctual::readable(&socket).await.expect_err("it would enter the kernel");
            assert_eq!(refused.kind(), ErrorKind::Unsupported);
            assert!(refused.to_string().contains("bind a task"), "{refused}");
            punctual::delay(1.millis()).await;
            cx.shared.left.lock(|left| *left -= 1);
        }
    }
}

#[test]
fn other_thread_waits_for_descriptors() {
    let _alone = crate::alone();
    for config in crate::polling::both() {
        let report = events::app::run(config).expect("it starts");
        assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
        assert!(report.task("received").unwrap().jobs >= 20, "{report}");
    }
}

#[test]
fn reports_page_faults_and_switches_of_thread() {
    let _alone = crate::alone();
    if !crate::polling::two_cpus() {
        return;
    }
    let note = |config: Config| {
        let report = events::app::run(config).expect("it starts");
        let hits =
            report.settings.notes.iter().find_map(|note| note.strip_prefix("while partition fast polled: "));
        hits.map(str::to_owned).unwrap_or_else(|| panic!("there is no account: {report}"))
    };
    let usual = note(Config::new());
    assert!(usual.starts_with("page faults ") && usual.contains(", system calls not counted, "), "{usual}");
    assert!(usual.contains(", interrupts of CPU "), "{usual}");
    // Threads of the app see the same mounts as this one.
    let is_traceable = crate::tracefs::enter();
    let counted = note(Config::new().trace(true));
    let calls =
        counted.split(", ").find_map(|part| part.strip_prefix("system calls ")).expect("they are named");
    match is_traceable {
        // The jobs read a descriptor 21 times.
        Ok(()) => {
            let count = calls.split(' ').next().and_then(|count| count.parse::<u64>().ok());
            assert!(count.is_some_and(|count| count >= 21), "{counted}");
            assert!(counted.contains("read ") || !calls.contains('('), "{counted}");
        }
        Err(why) => assert!(calls.starts_with("not counted ("), "{counted}, and {why}"),
    }
}

mod calls {
    use super::*;

    pub(super) static ORDER: AtomicU32 = AtomicU32::new(0);

    /// Submits calls, each of which expects the one before to have been made.
    #[punctual::app(partitions = [fast(poll)], main = false)]
    pub(super) mod app {
        use punctual::background;
        use punctual::prelude::*;

        use super::{ORDER, Ordering};

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            ORDER.store(0, Ordering::Relaxed);
            submit::spawn(0).unwrap();
            (Shared {}, Local {})
        }

        #[task]
        fn submit(_: submit::Context, n: u32) {
            let call = move || {
                assert_eq!(
                    ORDER.fetch_add(1, Ordering::Relaxed),
                    n,
                    "in the order in which they were submitted"
                );
                if n == 999 {
                    stop::spawn().unwrap();
                }
            };
            match background::submit(call) {
                Ok(()) if n == 999 => {}
                Ok(()) => submit::spawn(n + 1).unwrap(),
                // Full: the background thread needs a moment.
                Err(_) => drop(submit::spawn_after(50.micros(), n)),
            }
        }

        /// On another thread, `shutdown` stops the apps of other tests too.
        #[task]
        fn stop(_: stop::Context) {
            punctual::shutdown();
        }
    }
}

#[test]
fn runs_all_calls_in_order() {
    let _alone = crate::alone();
    for config in crate::polling::both() {
        let report = calls::app::run(config).expect("it starts");
        assert_eq!((report.exit_code(), calls::ORDER.load(Ordering::Relaxed)), (0, 1_000), "{report}");
    }
}

mod quiet {
    use super::*;

    /// Sleeps of the background thread until its first and its second call, and ns between them.
    pub(super) static SLEEPS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    pub(super) static TIMES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

    /// Submits two calls, a second apart.
    #[punctual::app(partitions = [fast(poll)], main = false)]
    pub(super) mod app {
        use punctual::background;

        use super::{Ordering, SLEEPS, TIMES, voluntary_switches};

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            (Shared {}, Local {})
        }

        #[task(period = 1.secs(), local = [at: usize = 0])]
        fn submit(cx: submit::Context) {
            let at = *cx.local.at;
            *cx.local.at += 1;
            let call = move || {
                SLEEPS[at].store(voluntary_switches(), Ordering::Relaxed);
                TIMES[at].store(punctual::now().as_ticks(), Ordering::Relaxed);
                if at == 1 {
                    stop::spawn().unwrap();
                }
            };
            background::submit(call).ok();
        }

        /// On another thread, `shutdown` stops the apps of other tests too.
        #[task]
        fn stop(_: stop::Context) {
            punctual::shutdown();
        }
    }

    /// Returns how often the calling thread has slept.
    fn voluntary_switches() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("/proc is mounted");
        crate::polling::voluntary_switches(&status)
    }
}

#[test]
fn background_thread_makes_at_most_100_calls_per_second_without_work() {
    let _alone = crate::alone();
    if !crate::polling::two_cpus() {
        return;
    }
    let report = quiet::app::run(Config::new()).expect("it starts");
    assert_eq!(report.outcome, Outcome::Shutdown, "{report}");
    let of = |values: &[AtomicU64; 2]| values[1].load(Ordering::Relaxed) - values[0].load(Ordering::Relaxed);
    let (sleeps, seconds) = (of(&quiet::SLEEPS), of(&quiet::TIMES) as f64 / 1e9);
    // Each sleep is one system call.
    assert!(sleeps > 0 && sleeps as f64 <= 100.0 * seconds, "{sleeps} in {seconds} s");
}

mod ends {
    /// Runs until another task stops it.
    #[punctual::app(partitions = [fast(poll)], main = false)]
    pub(super) mod app {
        use punctual::prelude::*;

        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context, panics: bool) -> (Shared, Local) {
            busy::spawn().unwrap();
            if panics {
                panics::spawn_after(2.millis()).unwrap();
            }
            (Shared {}, Local {})
        }

        /// There is always work at level 1.
        #[task]
        fn busy(_: busy::Context) {
            busy::spawn().ok();
        }

        #[task(priority = 2)]
        fn panics(_: panics::Context) {
            panic!("on purpose");
        }

        #[task(priority = 2, period = 1.millis())]
        fn tick(_: tick::Context) {
            println!("tick");
        }

        #[shutdown]
        fn shutdown(_: shutdown::Context) {
            println!("bye");
        }
    }
}

#[test]
fn panic_and_time_limit_stop_run() {
    let _alone = crate::alone();
    if !crate::polling::two_cpus() {
        return;
    }
    let report = ends::app::run(Config::new(), true).expect("it starts");
    assert!(matches!(report.outcome, Outcome::Panicked { .. }), "{report}");
    // Its thread is an ordinary one, which may get a CPU late on a busy machine.
    let until = punctual::Duration::from_millis(500);
    let report = ends::app::run(Config::new().until(until), false).expect("it starts");
    assert_eq!(report.outcome, Outcome::TimeUp, "{report}");
    assert!(
        report.task("tick").unwrap().jobs > 0,
        "the clock is looked at, however busy level 1 is: {report}"
    );
}

#[test]
#[ignore = "a program for `signal_stops_app`"]
fn waits_until_signal() {
    process::exit(punctual::export::main(|config| ends::app::run(config, false)));
}

#[test]
fn signal_stops_app() {
    let _alone = crate::alone();
    if !crate::polling::two_cpus() {
        return;
    }
    let mut program = process::start(process::program("polling::work::waits_until_signal"));
    program.wait_for("tick");
    program.signal(rustix::process::Signal::TERM);
    let ended = program.end();
    assert_eq!(ended.code, 0, "{}", ended.output);
    assert!(ended.output.contains("bye"), "{}", ended.output);
}

#[test]
#[ignore = "a program for `does_not_take_only_cpu`"]
fn on_one_cpu() {
    let mut one = rustix::thread::CpuSet::new();
    let all = rustix::thread::sched_getaffinity(None).expect("the affinity can be read");
    one.set((0..).find(|&cpu| all.is_set(cpu)).expect("there is a CPU"));
    rustix::thread::sched_setaffinity(None, &one).expect("it is allowed");
    process::exit(punctual::export::main(|config| ends::app::run(config, false)));
}

#[test]
fn does_not_take_only_cpu() {
    let ended = process::start(process::program("polling::work::on_one_cpu")).end();
    assert_eq!(ended.code, 2, "{}", ended.output);
    for part in ["the partition `fast` polls", "allow it another CPU", "remove `poll`"] {
        assert!(ended.output.contains(part), "{part} is not in: {}", ended.output);
    }
}

mod hangs {
    /// Submits a call that never returns.
    #[punctual::app(partitions = [fast(poll)], main = false)]
    pub(super) mod app {
        #[shared]
        struct Shared {}

        #[local]
        struct Local {}

        #[init]
        fn init(_: init::Context) -> (Shared, Local) {
            hang::spawn().unwrap();
            (Shared {}, Local {})
        }

        #[task]
        fn hang(_: hang::Context) {
            let call = || {
                println!("called");
                punctual::shutdown();
                loop {
                    std::thread::park();
                }
            };
            punctual::background::submit(call).ok();
        }
    }
}

#[test]
#[ignore = "a program for `hanging_call_does_not_block_shutdown`"]
fn hanging() {
    process::exit(punctual::export::main(hangs::app::run));
}

#[test]
fn hanging_call_does_not_block_shutdown() {
    if !crate::polling::two_cpus() {
        return;
    }
    let ended = process::start(process::program("polling::work::hanging")).end();
    assert_eq!(ended.code, 1, "{}", ended.output);
    assert!(ended.output.contains("`background::submit`"), "{}", ended.output);
}

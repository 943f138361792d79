//! The partition's word if restartable sequences are missing, refused, or currently unusable: the
//! app behaves the same.
//!
//! Every app runs as a separate program.
#![cfg(all(
    feature = "monitoring",
    target_arch = "x86_64",
    target_env = "gnu",
    target_pointer_width = "64",
    not(thread_sanitizer)
))]

use crate::process::Ended;
use crate::{privileges, process};
use test_skip::{Need, skip};

/// Disturbance of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Nothing,
    /// The kernel refuses membarrier before the app starts.
    RefusedAtStart,
    /// It refuses it to the first foreign thread that spawns.
    RefusedLater,
    /// Jobs are moved to another CPU and back.
    Moved,
    /// A foreign thread forks, and the child does not return.
    Forked,
}

const ALL: [Trouble; 5] =
    [Trouble::Nothing, Trouble::RefusedAtStart, Trouble::RefusedLater, Trouble::Moved, Trouble::Forked];

/// Number of repetitions of each job.
pub(crate) const ROUNDS: u32 = 300;

/// Makes the kernel return EPERM from now on to the calling thread, and to those that it starts,
/// for membarrier(2). Returns whether such filters are available.
pub(crate) fn refuse_membarrier() -> bool {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let mut filter = [
        // The number of the call.
        statement(0x20, 0),
        libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_membarrier as u32 },
        statement(0x06, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(0x06, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid, its jumps end within it, and it lives for the calls.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
    }
}

fn affinity() -> libc::cpu_set_t {
    // SAFETY: all-zero is a valid set, which the call fills.
    unsafe {
        let mut set = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        set
    }
}

/// Moves the calling thread.
fn move_to(set: &libc::cpu_set_t) {
    // SAFETY: it is a valid set.
    let moved = unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
    assert_eq!(moved, 0, "{}", std::io::Error::last_os_error());
}

/// Runs `f` on a CPU of `all` other than the current one; returns whether there is one.
pub(crate) fn elsewhere(all: &libc::cpu_set_t, f: impl FnOnce()) -> bool {
    let here = affinity();
    // SAFETY: the number is below the size of the sets; all-zero is a valid set.
    let mut others = (0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, all) && !libc::CPU_ISSET(cpu, &here) });
    let Some(other) = others.next() else { return false };
    // SAFETY: as above.
    let there = unsafe {
        let mut set = std::mem::zeroed();
        libc::CPU_SET(other, &mut set);
        set
    };
    move_to(&there);
    f();
    move_to(&here);
    true
}

#[punctual::app(main = false)]
mod app {
    use std::sync::mpsc::{Sender, channel};

    use punctual::prelude::*;

    use super::{ROUNDS, Trouble};

    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {
        trouble: Trouble,
        all: libc::cpu_set_t,
        foreign: Sender<()>,
        rounds: u32,
    }

    #[init]
    fn init(_: init::Context, trouble: Trouble, all: libc::cpu_set_t) -> (Shared, Local) {
        let (foreign, begin) = channel();
        std::thread::spawn(move || {
            // SAFETY: the set has CPUs of this process.
            unsafe { libc::sched_setaffinity(0, size_of_val(&all), &all) };
            begin.recv().unwrap();
            if trouble == Trouble::RefusedLater && !super::refuse_membarrier() {
                println!("NO FILTERS");
            }
            if trouble == Trouble::Forked {
                // SAFETY: the child only ends.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: the call takes no pointers.
                    unsafe { libc::_exit(0) };
                }
                punctual_process::child::wait_for_fork(child, punctual_process::child::TEST_LIMIT).unwrap();
            }
            for _ in 0..ROUNDS {
                while below::spawn().is_err() {
                    std::thread::yield_now();
                }
            }
        });
        work::spawn().unwrap();
        (Shared { count: 0 }, Local { trouble, all, foreign, rounds: 0 })
    }

    #[idle]
    fn idle(_: idle::Context) {}

    /// Locks, and calls a job that locks.
    #[task(priority = 2, shared = [count], local = [trouble, all, foreign])]
    fn work(mut cx: work::Context) {
        let moved = *cx.local.trouble == Trouble::Moved;
        let mut some = || {
            for _ in 0..ROUNDS / 2 {
                cx.shared.count.lock(|count| *count += 1);
                above::spawn().unwrap();
            }
        };
        some();
        if moved && !super::elsewhere(cx.local.all, &mut some) {
            println!("ONE CPU");
        }
        if !moved {
            some();
        }
        cx.local.foreign.send(()).unwrap();
    }

    #[task(priority = 3, shared = [count])]
    fn above(mut cx: above::Context) {
        cx.shared.count.lock(|count| *count += 1);
    }

    #[task(priority = 1, capacity = 4, shared = [count], local = [rounds])]
    fn below(mut cx: below::Context) {
        *cx.local.rounds += 1;
        cx.shared.count.lock(|count| *count += 1);
        if *cx.local.rounds == ROUNDS {
            cx.shared.count.lock(|count| println!("COUNTED {count}"));
            punctual::shutdown();
        }
    }
}

fn run(trouble: Trouble, more: &[(&str, &str)]) -> Ended {
    let mut program = process::program("word_fallback::runs");
    program.env("TROUBLE", format!("{trouble:?}")).env("PUNCTUAL_REPORT", "1").envs(more.iter().copied());
    privileges::no_runaways(&mut program);
    process::start(program).end()
}

/// Start of the report's note if the word is an atomic.
const LOCKED: &str = "locks and spawns take locked instructions, since";

fn is_whole(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.output);
    assert!(ended.output.contains(&format!("COUNTED {}", 3 * ROUNDS)), "{}", ended.output);
}

#[test]
fn loses_no_job_with_and_without_rseq() {
    let with = run(Trouble::Nothing, &[]);
    is_whole(&with);
    // If the kernel or the C library lacks them, this prints it.
    println!("with sequences: {}", !with.output.contains(LOCKED));
    let off = run(Trouble::Nothing, &[("PUNCTUAL_RSEQ", "0")]);
    is_whole(&off);
    assert!(!off.output.contains(LOCKED), "it was wanted: {}", off.output);
}

#[test]
fn reports_c_library_without_restartable_sequences() {
    let ended = run(Trouble::Nothing, &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")]);
    is_whole(&ended);
    let why = format!("{LOCKED} the C library has registered no restartable sequences with the kernel");
    assert!(ended.output.contains(&why), "{}", ended.output);
}

#[test]
fn reports_kernel_without_membarrier() {
    let ended = run(Trouble::RefusedAtStart, &[]);
    if ended.output.contains("NO FILTERS") {
        return skip(Need::Seccomp, "a refused membarrier");
    }
    is_whole(&ended);
    let why = format!("{LOCKED} the kernel does not abort restartable sequences (Operation not permitted");
    let none = format!("{LOCKED} the C library");
    assert!(ended.output.contains(&why) || ended.output.contains(&none), "{}", ended.output);
}

#[test]
fn process_ends_if_membarrier_is_refused_later() {
    let ended = run(Trouble::RefusedLater, &[]);
    if ended.output.contains("NO FILTERS") || ended.output.contains(LOCKED) {
        return skip(Need::System("seccomp filters and restartable sequences"), "a membarrier refused later");
    }
    if ended.code == 0 {
        // The foreign thread was on the app's CPU whenever it changed the word.
        return is_whole(&ended);
    }
    assert_eq!(ended.code, 1, "{}", ended.output);
    for words in ["the kernel refuses membarrier", "Operation not permitted", "PUNCTUAL_RSEQ=0"] {
        assert!(ended.output.contains(words), "no `{words}` in: {}", ended.output);
    }
}

#[test]
fn loses_no_job_after_migration() {
    let ended = run(Trouble::Moved, &[]);
    if ended.output.contains("ONE CPU") {
        return skip(Need::TwoCpus, "a job that moves");
    }
    is_whole(&ended);
}

#[test]
fn loses_no_job_after_fork() {
    is_whole(&run(Trouble::Forked, &[]));
}

#[test]
#[ignore = "a program that the other tests run"]
fn runs() {
    let trouble = process::chosen("TROUBLE", ALL);
    if trouble == Trouble::RefusedAtStart && !refuse_membarrier() {
        return println!("NO FILTERS");
    }
    let all = affinity();
    process::exit(punctual::export::main(|config| app::run(config, trouble, all)));
}

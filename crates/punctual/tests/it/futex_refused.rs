//! A kernel that refuses futexes, as through a container's seccomp filter: the app does not start,
//! and no thread spins or sleeps forever.
//!
//! Every app runs as a separate program, which filters its own system calls.
#![cfg(feature = "monitoring")]

use std::env;

use crate::process::Ended;
use crate::{privileges, process};
use punctual::StartError;
use test_skip::{Need, skip};

/// The operations of futex(2) that the executor uses.
const OPERATIONS: [(&str, i32); 5] = [
    ("FUTEX_WAIT", libc::FUTEX_WAIT),
    ("FUTEX_WAIT_BITSET", libc::FUTEX_WAIT_BITSET),
    ("FUTEX_WAKE", libc::FUTEX_WAKE),
    ("FUTEX_LOCK_PI", libc::FUTEX_LOCK_PI),
    ("FUTEX_UNLOCK_PI", libc::FUTEX_UNLOCK_PI),
];

/// Makes the kernel return EPERM from now on to the calling thread, and to those that it starts,
/// for this operation of futex(2). Returns whether such filters are available.
pub(crate) fn refuse(operation: i32) -> bool {
    /// Offset of the call's number in a filter's data, and of the lower half of its second
    /// argument.
    const NUMBER: u32 = 0;
    const SECOND: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
    let load = |offset| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: offset };
    let unless = |value: i32, skip| libc::sock_filter { code: 0x15, jt: 0, jf: skip, k: value as u32 };
    let answer = |answer| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: answer };
    let and = |mask: i32| libc::sock_filter { code: 0x54, jt: 0, jf: 0, k: mask as u32 };
    let mut filter = [
        load(NUMBER),
        unless(libc::SYS_futex as i32, 4),
        load(SECOND),
        and(!(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME)),
        unless(operation, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid, its jumps end within it, and it lives for the calls.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
    }
}

/// Partitions of one level each. `low` loses one futex operation, and then needs it.
#[punctual::app(main = false, partitions = [slow, fast])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        operation: i32,
    }

    #[init]
    fn init(_: init::Context, operation: i32) -> (Shared, Local) {
        (Shared {}, Local { operation })
    }

    /// More than once: a thread that is awake need not be woken. Its release is too far ahead for a
    /// sleep without the futex.
    #[task(priority = 1, core = slow, period = 20.millis(), local = [operation, jobs: u32 = 0])]
    fn low(cx: low::Context) {
        *cx.local.jobs += 1;
        if *cx.local.jobs > 50 {
            println!("NEVER NEEDED");
            return punctual::shutdown();
        }
        if !super::refuse(*cx.local.operation) {
            println!("NO FILTERS");
            return punctual::shutdown();
        }
        println!("REFUSED");
        let _ = high::spawn();
    }

    #[task(priority = 1, core = fast)]
    fn high(_: high::Context) {
        // Only a wait for this partition is to be seen.
    }
}

/// Runs a program with and without privileges.
fn each(path: &str, operation: &str) -> [Ended; 2] {
    let mut program = process::program(&format!("futex_refused::{path}"));
    program.env("OPERATION", operation);
    let unprivileged = privileges::unprivileged(&program);
    [program, unprivileged].map(|mut command| {
        privileges::no_runaways(&mut command);
        process::start(command).end()
    })
}

#[test]
fn does_not_start_if_operation_is_refused() {
    for (operation, _) in OPERATIONS {
        for ended in each("starts", operation) {
            if ended.output.contains("NO FILTERS") {
                skip(Need::Seccomp, operation);
                continue;
            }
            assert_eq!(ended.code, 1, "{operation}: {}", ended.output);
            for words in [&format!("futex({operation})"), "Operation not permitted", "seccomp filter"] {
                assert!(ended.output.contains(words), "no `{words}` in: {}", ended.output);
            }
        }
    }
}

#[test]
fn ends_if_operation_is_refused_later() {
    for (operation, shown) in
        [("FUTEX_WAIT_BITSET", "futex(FUTEX_WAIT_BITSET)"), ("FUTEX_WAKE", "futex(FUTEX_WAKE)")]
    {
        for ended in each("loses", operation) {
            if ended.output.contains("NO FILTERS") {
                skip(Need::Seccomp, operation);
                continue;
            }
            assert_eq!(ended.code, 1, "{operation}: {}", ended.output);
            let words = format!("the kernel refuses {shown}: Operation not permitted");
            assert!(ended.output.contains(&words), "{operation}: {}", ended.output);
            assert!(ended.output.contains("seccomp"), "{operation}: {}", ended.output);
        }
    }
}

fn operation() -> (&'static str, i32) {
    let wanted = env::var("OPERATION").expect("the other tests set it");
    let known = OPERATIONS.into_iter().find(|(name, _)| *name == wanted);
    known.expect("the other tests know them")
}

#[test]
#[ignore = "a program that the other tests run"]
fn starts() {
    let (_, operation) = operation();
    if !refuse(operation) {
        println!("NO FILTERS");
        return;
    }
    let code = match app::run(punctual::Config::new(), operation) {
        Err(error @ StartError::Futex { .. }) => {
            println!("{error}");
            error.exit_code()
        }
        other => {
            println!("{other:?}");
            101
        }
    };
    // No exit that waits for other threads. SAFETY: the call takes no pointers and does not return.
    unsafe { libc::_exit(code.into()) };
}

#[test]
#[ignore = "a program that the other tests run"]
fn loses() {
    let (_, operation) = operation();
    process::exit(punctual::export::main(|config| app::run(config, operation)));
}

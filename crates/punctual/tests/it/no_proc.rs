//! Without a mounted `/proc`: memory is locked nevertheless, and the obstacles to locking it are
//! named.
//!
//! The app runs as a program in its own mount namespace, in which something else is mounted over
//! `/proc`.

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::process::Ended;
use crate::{privileges, process};
use punctual::Config;
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use test_skip::{Need, skip};

#[punctual::app(main = false)]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    /// On its worker, whose stack was mapped when memory was already locked.
    #[task(priority = 1, period = punctual::Duration::from_millis(1))]
    fn queries(_: queries::Context) {
        println!("WORKER'S STACK LOCKED: {}", super::stack_is_locked());
        punctual::shutdown();
    }
}

/// Returns whether the calling thread's stack is locked, according to the kernel's answer to a
/// request to discard its page.
fn stack_is_locked() -> bool {
    let here = 0_u8;
    let page = std::ptr::from_ref(&here).map_addr(|address| address & !4095).cast_mut();
    // SAFETY: anonymous memory is never discarded by this call.
    let status = unsafe { libc::msync(page.cast(), 1, libc::MS_INVALIDATE) };
    status != 0 && Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
}

/// Properties of the process, in addition to a missing `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    /// With a limit on locked memory that does not apply to it.
    Root,
    /// With this limit, in KiB.
    Nobody(u64),
}

/// The number of `CAP_IPC_LOCK`.
const IPC_LOCK: libc::c_ulong = 14;

/// Makes the process that `command` becomes one without `/proc`.
fn hide_proc(command: &mut Command, process: Process) {
    const TMPFS: *const libc::c_char = c"tmpfs".as_ptr();
    let root = is_root();
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    let hide = move || {
        let user = if root { 0 } else { libc::CLONE_NEWUSER };
        let private = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: the strings are literals that end with 0, and the calls affect only this process,
        // which is about to execute the program.
        unsafe {
            check(libc::unshare(libc::CLONE_NEWNS | user))?;
            check(libc::mount(std::ptr::null(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
            check(libc::mount(TMPFS, c"/proc".as_ptr(), TMPFS, 0, std::ptr::null()))?;
            if root && process != Process::Root {
                // The executable may be accessible only to root, so the user stays and the
                // capability is dropped.
                check(libc::prctl(libc::PR_CAPBSET_DROP, IPC_LOCK, 0, 0, 0))?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and nothing else.
    unsafe { command.pre_exec(hide) };
}

fn is_root() -> bool {
    // SAFETY: the call takes no pointers and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Returns the end of the program without `/proc`; `None` if this cannot be set up here.
fn without_proc(process: Process) -> Option<Ended> {
    if process == Process::Root && !is_root() {
        skip(Need::Root, "locked memory");
        return None;
    }
    let mut trial = Command::new("true");
    hide_proc(&mut trial, process);
    if let Err(error) = trial.status_within(TEST_LIMIT) {
        skip(Need::MountNamespace, error);
        return None;
    }
    let mut command = process::program("no_proc::program");
    privileges::no_runaways(&mut command);
    let kib = match process {
        Process::Root => 64,
        Process::Nobody(kib) => kib,
    };
    privileges::limit(&mut command, privileges::Resource::Memlock, kib * 1024, kib * 1024);
    hide_proc(&mut command, process);
    Some(process::start(command).end())
}

#[track_caller]
fn says(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, 0, "{}", ended.output);
    for words in words {
        assert!(ended.output.contains(words), "no `{words}` in: {}", ended.output);
    }
}

#[test]
fn locks_memory_where_permitted() {
    if let Some(ended) = without_proc(Process::Root) {
        says(&ended, &["NO PROC", "memory: locked", "WORKER'S STACK LOCKED: true"]);
        assert!(!ended.output.contains("RLIMIT_MEMLOCK"), "{}", ended.output);
    }
}

#[test]
fn names_binding_limit() {
    for kib in [0, 64] {
        if let Some(ended) = without_proc(Process::Nobody(kib)) {
            let limit = format!("RLIMIT_MEMLOCK is {kib} KiB; run as root, grant CAP_IPC_LOCK, or raise");
            says(&ended, &["NO PROC", "memory: not locked", &limit, "WORKER'S STACK LOCKED: false"]);
        }
    }
}

#[test]
#[ignore = "a program that the other tests run"]
fn program() {
    if std::fs::read_to_string("/proc/self/status").is_err() {
        println!("NO PROC");
    }
    let report = app::run(Config::new()).expect("the app starts");
    println!("{report}");
}

//! The guard: forbidden operations of jobs are reported, with the task, the call and the stack;
//! permitted ones are not; and the guard reports its blind spots.
//!
//! Each case is a separate process, because it prints and sets a logger. In real and virtual time,
//! with and without privileges.
#![cfg(all(feature = "async", feature = "guard"))]

#[path = "../support/privileges.rs"]
mod privileges;
#[path = "../support/process.rs"]
mod process;

mod clean;
mod ends;
mod wrong;

use punctual::config::{Config, Guard};
use punctual::guard::Allocator;

use process::Ended;
use test_skip::{Need, skip};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::system();

/// True if the guard sees system calls on this machine.
const DISPATCHES: bool = cfg!(target_arch = "x86_64");
/// Its message if it does not.
const UNSEEN: &str = "the guard does not see system calls";

/// What a program runs with.
const TIMES: [&str; 2] = ["linux", "virtual"];

/// Returns the program's configuration: the kind of time that the test has chosen, with the guard.
fn config(guard: Guard) -> Config {
    Config::from_env().until(punctual::Duration::from_secs(60)).guard(guard)
}

/// Runs the program `path` with this case in both kinds of time, as this user and as an ordinary
/// one; the second argument of `check` is whether functions have names: a user who cannot read the
/// executable, perhaps an ordinary one, gets none.
fn each(path: &str, case: &str, mut check: impl FnMut(&Ended, bool)) {
    let executable = std::env::current_exe().expect("a process knows its executable");
    let readable = std::fs::File::open(executable).is_ok();
    for time in TIMES {
        let mut program = process::program(path);
        program.env("CASE", case).env("PUNCTUAL_PORT", time);
        let commands = privileges::with_and_without(program);
        for (command, named) in commands.into_iter().zip([readable, false]) {
            let ended = process::start(command).end();
            if ended.output.contains(UNSEEN) {
                skip(Need::System("system call dispatch"), case);
                assert!(
                    !DISPATCHES || ended.output.contains("PR_SET_SYSCALL_USER_DISPATCH"),
                    "{}",
                    ended.output
                );
                continue;
            }
            check(&ended, named);
        }
    }
}

/// Returns whether the output has a line with all of these words.
fn has_line(ended: &Ended, words: &[&str]) -> bool {
    ended.output.lines().any(|line| words.iter().all(|word| line.contains(word)))
}

//! Valgrind reports no errors of an app, in virtual time and on threads of the kernel.
#![cfg(feature = "async")]

use std::process::Command;

use crate::process;
use punctual::Config;

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        count: u32,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        waits::spawn().expect("the app is running");
        (Shared { count: 0 }, Local {})
    }

    #[task(priority = 1, period = 5.millis(), shared = [count])]
    fn counts(mut cx: counts::Context) {
        let count = cx.shared.count.lock(|count| {
            *count += 1;
            *count
        });
        receives::spawn(vec![count; 100]).expect("one at a time is in flight");
    }

    #[task(priority = 3, shared = [count])]
    fn receives(mut cx: receives::Context, message: Vec<u32>) {
        let count = cx.shared.count.lock(|count| *count);
        assert_eq!(message, [count; 100]);
        if count == 5 {
            punctual::shutdown();
        }
    }

    #[task(priority = 2)]
    async fn waits(_: waits::Context) {
        punctual::delay(2.millis()).await;
        punctual::background::spawn("helper", || vec![7_u8; 64]).expect("threads can be started");
    }
}

#[test]
#[ignore = "a program that the other test runs"]
fn program() {
    let report = app::run(Config::from_env()).expect("the app starts");
    println!("{report}\n{:?}", report.outcome);
}

#[test]
#[ignore = "needs valgrind"]
fn valgrind_reports_no_errors() {
    for port in ["virtual", "linux"] {
        let program = process::program("valgrind::program");
        let mut command = Command::new("valgrind");
        command.args(["--error-exitcode=9", "--errors-for-leak-kinds=definite", "--leak-check=full"]);
        command.arg(program.get_program()).args(program.get_args()).env("PUNCTUAL_PORT", port);
        let ended = process::start(command).end();
        assert_eq!(ended.code, 0, "{port}: {}", ended.output);
        for words in ["ERROR SUMMARY: 0 errors", "receives", "Shutdown"] {
            assert!(ended.output.contains(words), "{port}: no `{words}` in:\n{}", ended.output);
        }
    }
}

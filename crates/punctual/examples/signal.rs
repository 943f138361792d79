//! SIGINT and SIGTERM end an app as `shutdown` does.
//!
//! linux-only: virtual time does not watch for signals
//!
//! The running job ends, the hook runs, every thread is joined, and `run` returns. A second signal
//! would end the process immediately.

use punctual::{Config, StartError};

fn main() -> Result<(), StartError> {
    let report = app::run(Config::new())?;
    println!("{}, exit code {}", report.outcome, report.exit_code());
    Ok(())
}

#[punctual::app(main = false)]
mod app {
    use rustix::process::{Signal, getpid, kill_process};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        work::spawn().unwrap();
        (Shared {}, Local {})
    }

    #[task]
    fn work(_: work::Context) {
        println!("work starts");
        kill_process(getpid(), Signal::TERM).expect("a process may send itself signals");
        println!("work ends");
    }

    #[shutdown]
    fn shutdown(_: shutdown::Context) {
        println!("shutdown");
    }
}

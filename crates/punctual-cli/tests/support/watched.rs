//! An app to be watched, in a separate process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use punctual::{Config, Duration};
use punctual_process::child::BoundedChild;

#[punctual::app(main = false)]
mod watched {
    use punctual::background::Traffic;
    use punctual::prelude::*;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        first: bool,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        Traffic::new("/watched").set(7, 1, 2);
        (Shared {}, Local { first: true })
    }

    #[task(priority = 3, period = 2.millis(), local = [first])]
    fn beat(cx: beat::Context) {
        if std::mem::take(cx.local.first) {
            println!("READY");
        }
    }

    /// Cannot meet its deadline.
    #[task(priority = 2, period = 20.millis(), deadline = 1.micros())]
    fn late(_: late::Context) {
        punctual::spend(2.micros());
    }

    #[task(priority = 1)]
    fn never(_: never::Context) {}
}

/// Runs the app; ends by itself, in case it is not killed.
pub(crate) fn run() {
    watched::run(Config::new().until(Duration::from_secs(900))).expect("it can be started");
}

/// The app in progress; killed on drop.
pub(crate) struct App(Child);

impl App {
    /// Starts the test that [runs](run) it, and waits for its first job.
    pub(crate) fn start(test: &str) -> Self {
        Self::start_with(test, &[])
    }

    /// The same, with these variables in its environment.
    pub(crate) fn start_with(test: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a process knows its executable"));
        command.args(["--ignored", "--exact", "--nocapture", test]);
        for name in ["PUNCTUAL_PORT", "PUNCTUAL_CPU", "PUNCTUAL_STRICT", "PUNCTUAL_METRICS"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the test is a program");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let app = Self(child);
        let ready = lines.map_while(Result::ok).any(|line| line.contains("READY"));
        assert!(ready, "the app has not started");
        app
    }

    pub(crate) fn process(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.0.end_at_once();
    }
}

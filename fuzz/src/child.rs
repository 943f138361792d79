//! Process that runs one app by one script.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use clap::ValueEnum;
use punctual::{Config, Duration, StartError};

use crate::app::{self, App};
use crate::ledger::{self, Ledger, RELAXED, ledger, violation};
use crate::random::Random;
use crate::script::{self, Script, script};
use crate::{foreign, verdict};

/// Kind of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// Real time, on threads.
    Real,
    /// Virtual time.
    Virtual,
}

impl Time {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
        }
    }
}

/// Exit code if the app cannot run on this machine.
pub(crate) const SKIPPED: i32 = 77;

/// Runs `app` by `script` as often as the script states, and exits with the code of the last run.
pub(crate) fn live(app: &'static App, time: Time, words: Script, books: i32) -> ! {
    ledger::choose(Ledger::map(books).expect("the ledger is inherited"));
    app::choose(app);
    script::choose(words);
    // Short, without anything that can fail.
    panic::set_hook(Box::new(|info| {
        let name = thread::current().name().unwrap_or("?").to_owned();
        let _ = writeln!(std::io::stderr(), "[{name}] {info}");
    }));
    let mut code = 0;
    for run in 0..script().runs {
        // Further runs may use the other kind of time.
        let other = run > 0 && Random::of(&[script().seed, run.into()]).one_in(2);
        let time = match time {
            Time::Virtual if other => Time::Real,
            Time::Real if other => Time::Virtual,
            time => time,
        };
        code = once(app, time);
    }
    ledger().closed.store(1, RELAXED);
    process::exit(code);
}

fn once(app: &'static App, time: Time) -> i32 {
    ledger().open();
    ledger().virtual_time.store((time == Time::Virtual).into(), RELAXED);
    let first = ledger().next_token.load(RELAXED);
    let config = Config::new().until(Duration::from_micros(script().until.into()));
    let config = match time {
        Time::Real => config,
        Time::Virtual => config.virtual_time(),
    };
    foreign::leave();
    let over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        for _ in 0..script().foreigners {
            scope.spawn(|| foreign::live(&over));
        }
        let ended = panic::catch_unwind(AssertUnwindSafe(|| (app.run)(config)));
        over.store(true, Ordering::Relaxed);
        ended
    });
    foreign::enter();
    ledger().ended.fetch_add(1, RELAXED);
    match ended {
        Ok(Ok(report)) => {
            verdict::run_has_ended(app, &report, first);
            report.exit_code().into()
        }
        Ok(Err(StartError::TooFewCpus { .. } | StartError::PollsOnlyCpu { .. })) => process::exit(SKIPPED),
        Ok(Err(error)) => {
            violation(&format!("the app does not start: {error}"));
            error.exit_code().into()
        }
        Err(_) => {
            violation("run panicked");
            101
        }
    }
}

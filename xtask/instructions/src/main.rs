//! Operations whose instructions `cargo xtask check instructions` counts: runs one of them a given
//! number of times.
//!
//! The apps are those of the benchmark `executor`, in virtual time. Without arguments the program
//! prints the names of the rows; with a row and a number it runs that row. `period` runs an app
//! with a periodic task on kernel threads.

use std::env;
use std::process::ExitCode;

#[macro_use]
#[path = "../../../crates/punctual/benches/support/apps.rs"]
mod apps;
mod back;
mod broadcast;
mod period;

use apps::Operation;
use punctual::Config;

app!(plain, false, false, false);
app!(monitored, true, false, false);
app!(profile, false, false, true);
// A hundred tasks in addition to those of every app.
#[rustfmt::skip]
app!(
    many, false, false, false,
    t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, t10, t11, t12, t13, t14, t15, t16, t17, t18, t19, t20, t21, t22, t23,
    t24, t25, t26, t27, t28, t29, t30, t31, t32, t33, t34, t35, t36, t37, t38, t39, t40, t41, t42, t43, t44, t45, t46, t47,
    t48, t49, t50, t51, t52, t53, t54, t55, t56, t57, t58, t59, t60, t61, t62, t63, t64, t65, t66, t67, t68, t69, t70, t71,
    t72, t73, t74, t75, t76, t77, t78, t79, t80, t81, t82, t83, t84, t85, t86, t87, t88, t89, t90, t91, t92, t93
);

type Measure = fn(Config, Operation, u64) -> std::time::Duration;

const ROWS: [(&str, Operation, Measure); 19] = [
    ("spawn to run, same level", Operation::SameLevel, plain::measure),
    ("spawn to run, same level, 100 tasks", Operation::SameLevel, many::measure),
    ("spawn to run, same level, 1000 timers armed", Operation::SameLevelTimed(1000), plain::measure),
    ("spawn to run, higher level", Operation::HigherLevel, plain::measure),
    ("spawn to run, higher level, 100 tasks", Operation::HigherLevel, many::measure),
    ("spawn to run, higher level and back", Operation::HigherLevel, back::measure),
    ("wake of an async task of a higher level", Operation::Wake, plain::measure),
    ("wake of an async task of a higher level, 100 tasks", Operation::Wake, many::measure),
    ("spawn_at + cancel", Operation::ArmAndCancel, plain::measure),
    ("lock + unlock, shared with a higher task", Operation::Lock, plain::measure),
    ("lock + unlock, shared with nobody", Operation::LockAlone, plain::measure),
    ("spawn to run, same level, monitored", Operation::SameLevel, monitored::measure),
    ("spawn to run, higher level, monitored", Operation::HigherLevel, monitored::measure),
    ("wake of an async task of a higher level, monitored", Operation::Wake, monitored::measure),
    ("spawn to run, higher level, could be profiled", Operation::HigherLevel, profile::measure),
    ("lock + unlock, shared with a higher task, could be profiled", Operation::Lock, profile::measure),
    ("lock + unlock, shared with nobody, could be profiled", Operation::LockAlone, profile::measure),
    ("publish 64 bytes to a broadcast", Operation::Other(broadcast::publish), plain::measure),
    (
        "publish 64 bytes to a broadcast, and read them",
        Operation::Other(broadcast::publish_and_read),
        plain::measure,
    ),
];

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match &*words {
        [] => ROWS.iter().for_each(|(name, ..)| println!("{name}")),
        [period, app, times] if period == "period" => {
            let Ok(times) = times.parse() else { return usage() };
            period::run(app == "monitored", times);
        }
        [row, times] => {
            let (Ok(row), Ok(times)) = (row.parse::<usize>(), times.parse()) else { return usage() };
            let Some((_, operation, measure)) = ROWS.get(row) else { return usage() };
            measure(Config::new().virtual_time(), *operation, times);
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: punctual-instructions [ROW TIMES | period plain|monitored TIMES]");
    ExitCode::from(2)
}

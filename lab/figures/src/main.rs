//! Prints as JSON the rows that the lab measures in instructions: `cargo xtask lab figures` runs it
//! in a guest.
//!
//! `punctual-figures SAMPLES idle` measures code paths; `punctual-figures SAMPLES load` measures
//! reactions to events, with `hackbench` as load.

use std::process::ExitCode;

use punctual_bench::{LoadKind, Options, Silent, Stop, SuiteName, suites};

/// The steps of the suite `latency` that measure paths rather than waiting.
const IDLE: [&str; 8] = [
    "switching at one level",
    "between levels, one CPU",
    "lock and unlock",
    "release, ",
    "to handler, idle",
    "at an instant, idle",
    "inversion, idle",
    "period, idle",
];

/// The same for steps with a load.
const LOAD: [&str; 3] = ["to handler, load", "at an instant, load", "inversion, load"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [samples, "idle"] => measure(samples, suites::rtos::NAME, &[])
            .and_then(|()| measure(samples, suites::latency::NAME, &IDLE)),
        [samples, "load"] => measure(samples, suites::latency::NAME, &LOAD),
        _ => Err("usage: punctual-figures SAMPLES idle|load".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("punctual-figures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(samples: &str, suite: SuiteName, only: &[&str]) -> Result<(), String> {
    let options = Options {
        suites: vec![suite],
        only: only.iter().map(|&step| step.to_owned()).collect(),
        samples: Some(samples.parse().map_err(|_| format!("`{samples}` is no number of samples"))?),
        load: if suite == suites::latency::NAME && only == LOAD {
            LoadKind::Hackbench
        } else {
            LoadKind::Own
        },
        ..Options::default()
    };
    let run = punctual_bench::run(&options, &Stop::default(), &Silent).map_err(|error| error.to_string())?;
    println!("{}", run.to_json().map_err(|error| error.to_string())?);
    Ok(())
}

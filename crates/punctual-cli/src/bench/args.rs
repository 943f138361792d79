//! The command line of `punctual bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use punctual_bench::{GpioLines, LoadKind, Options, SuiteName, suites};
use punctual_isolate::cpus::Cpus;

use crate::output::Json;
use crate::parse::{self, only_cpu, time};

/// Benchmark this machine and kernel for real-time work
///
/// Compares Punctual with POSIX primitives and predecessor crates. Run it as root or with
/// CAP_SYS_NICE: rows measured without real-time priorities are marked as such. All changes to the
/// system are undone at the end.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  punctual bench --quick                               within a minute
  punctual bench periods --period 250us                does it hold 4 kHz?
  punctual bench latency --html latency.html           one suite, and a page
  punctual bench latency --only eventfd                steps of a suite
  punctual bench --json=new.json --compare old.json    changes since a run
  punctual bench endurance --duration 28800s           latency for eight hours
  punctual bench compare qemu.json report.txt          a board next to QEMU"
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,

    /// Suites to run [default: all but endurance]
    #[arg(value_name = "SUITE", value_parser = suite_parser())]
    suites: Vec<SuiteName>,

    /// Take fewer samples: all suites finish within a minute
    #[arg(long)]
    quick: bool,

    /// Run only steps whose names contain this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// Samples per row, and runs of each scenario [default: 4096 and 64; 256 and 8 with --quick]
    #[arg(long, value_name = "N")]
    samples: Option<u32>,

    /// Length of an hourglass run, and of two windows of `periods` [default: 10s; 2s with --quick];
    /// of endurance [default: 3600s; 2s with --quick]
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,

    /// CPU to measure [default: an isolated one, otherwise the highest]
    #[arg(long, value_name = "LIST", value_parser = Cpus::checked)]
    cpus: Option<Cpus>,

    /// A period to hold, in addition to those of `periods`
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    period: Option<Duration>,

    /// Background load for steps that need one: own, hackbench or stress-ng
    #[arg(long, value_name = "KIND", default_value = "own")]
    load: LoadKind,

    /// Two connected GPIO lines to write and read [default: gpio-sim, if the kernel has it]
    #[arg(long, value_name = "CHIP:OUT:IN")]
    gpio: Option<GpioLines>,

    #[command(flatten)]
    pub(crate) json: Json,

    /// Write the results as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Compare with an earlier run saved by --json; a regression is a finding
    #[arg(long, value_name = "OLD.json")]
    pub(crate) compare: Option<PathBuf>,
}

/// Returns a parser of the names of suites, with the summary of each.
fn suite_parser() -> impl TypedValueParser<Value = SuiteName> {
    let names = suites::ALL.map(|suite| PossibleValue::new(suite.name.as_str()).help(suite.summary));
    PossibleValuesParser::new(names).map(|name| name.parse().expect("the parser accepts only these"))
}

/// An alternative to measuring.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show a run next to an earlier one and to published figures, without measuring
    Compare {
        /// The earlier run: a file of --json, or the captured output of a board
        old: PathBuf,
        /// The run to show: a file of the same kinds
        new: PathBuf,
    },
}

impl Bench {
    /// Returns whether results go to standard output only.
    pub(crate) fn is_only_printed(&self) -> bool {
        self.json.file().is_none() && self.html.is_none()
    }

    /// Returns the requested options.
    pub(crate) fn options(&self) -> Result<Options, String> {
        Ok(Options {
            suites: self.suites.clone(),
            only: self.only.clone(),
            quick: self.quick,
            samples: self.samples,
            hourglass: self.duration,
            period: self.period,
            load: self.load,
            gpio: self.gpio.clone(),
            cpu: self.cpus.as_ref().map(only_cpu).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Command, Punctual};

    fn options(line: &str) -> Result<Options, clap::Error> {
        match Punctual::try_parse_from(line.split(' '))?.command {
            Command::Bench(bench) => Ok(bench.options().unwrap()),
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn accepts_options_before_and_after_suite() {
        for line in ["punctual bench rtos --quick --cpus 1", "punctual bench --quick --cpus 1 rtos"] {
            let options = options(line).unwrap();
            assert_eq!(
                (options.suites, options.quick, options.cpu),
                (vec![suites::rtos::NAME], true, Some(1))
            );
        }
        assert!(options("punctual bench").unwrap().suites.is_empty());
        let several = options("punctual bench latency --quick rtos").unwrap();
        assert_eq!(several.suites, [suites::latency::NAME, suites::rtos::NAME]);
    }

    #[test]
    fn compares_two_saved_runs_without_measuring() {
        let parse = |line: &str| match Punctual::try_parse_from(line.split(' ')).map(|it| it.command) {
            Ok(Command::Bench(bench)) => bench.action,
            other => panic!("{other:?}"),
        };
        let Some(Action::Compare { old, new }) = parse("punctual bench compare qemu.json board.txt") else {
            panic!("no comparison");
        };
        assert_eq!((old, new), ("qemu.json".into(), "board.txt".into()));
        assert!(parse("punctual bench rtos").is_none());
        assert!(options("punctual bench compare qemu.json").is_err());
    }

    #[test]
    fn selects_steps_by_parts_of_their_names() {
        let options = options("punctual bench latency --only eventfd --only timerfd").unwrap();
        assert_eq!(options.only, ["eventfd", "timerfd"]);
    }

    #[test]
    fn names_flag_of_bad_value_and_exits_with_2() {
        for (line, flag) in [
            ("punctual bench --samples -1", "-1"),
            ("punctual bench --samples many", "--samples"),
            ("punctual bench --cpus x", "--cpus"),
            ("punctual bench --duration -3s", "-3"),
            ("punctual bench --duration 3", "--duration"),
            ("punctual bench --json rtoss", "rtoss"),
            ("punctual bench --load heavy", "--load"),
            ("punctual bench --gpio gpiochip0:1", "--gpio"),
            ("punctual bench rtoss", "rtoss"),
        ] {
            let error = options(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(flag), "{line}: {error}");
        }
    }
}

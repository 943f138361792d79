//! A run of the program: from the command line to reports and exit code.

use std::fmt;
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use crate::bus;
use crate::cli::Args;
use crate::controller::{self, Outcome, Setpoints};
use crate::log::Recorder;
use crate::plant::GIMBAL;
use crate::report::{StepResponse, format_urad, to_html, to_json};
use crate::setpoints::{LineParser, Timeline, read_file};
use crate::summary::{self, Run};
use crate::topics::{Carried, Links, Sender};
use crate::tuning;
use punctual::{Config, StartError};
use punctual_bridge::{Recording, is_replay};
use punctual_report::format::format_count;

/// Returns the default path of the report: in a checkout among the build products, which git
/// ignores.
fn default_report() -> PathBuf {
    let directory = Path::new("target");
    let directory = if directory.is_dir() { directory } else { Path::new("") };
    directory.join("gimbal-report.html")
}

/// Runs the gimbal according to the command line. Prints errors, and returns the exit code.
pub fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(code) => code,
        Err(Failure { code, message }) => {
            print_line(format_args!("gimbal: {message}"));
            code.into()
        }
    }
}

/// Prints the error in the command line, or the requested help or version. Returns the exit code.
pub fn print_message(message: &clap::Error) -> ExitCode {
    let printed = flush(message.print());
    match printed {
        Err(error) if !message.use_stderr() => {
            print_line(format_args!("gimbal: standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => u8::try_from(message.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// The reason for a missing result, and its exit code.
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn input(error: impl ToString) -> Self {
        Self { code: 2, message: error.to_string() }
    }

    fn other(error: impl ToString) -> Self {
        Self { code: 1, message: error.to_string() }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self { code: error.exit_code(), message: error.to_string() }
    }
}

fn try_run(args: &Args) -> Result<ExitCode, Failure> {
    // Replays run in virtual time, also those of a run in real time.
    let args = &Args { virtual_time: args.virtual_time || is_replay(), ..args.clone() };
    let (timeline, setpoints) = setpoints(args)?;
    if let Some(Some(file)) = &args.tune {
        tuning::check(file).map_err(Failure::input)?;
    }
    let gimbal = match &args.spi {
        Some(_) if args.virtual_time => {
            return Err(Failure::input(
                "--spi: a replay moves no real gimbal; omit it to move a simulated one",
            ));
        }
        Some(device) => bus::open(device, bus::Options { mode: args.spi_mode, hz: args.spi_hz })
            .map_err(Failure::other)?,
        None => bus::simulated(),
    };
    // Before anything moves, because a run that cannot be recorded is not the requested one.
    let recording = args.mcap.as_ref().map(Recording::create).transpose().map_err(Failure::other)?;
    let sender = match args.udp {
        Some(_) if args.virtual_time => Some(Sender::Recording),
        Some(address) => Some(Sender::Datagrams(bind(address)?)),
        None => args.transports.then_some(Sender::Transports),
    };
    let source = match (&sender, args.stdin && !args.virtual_time) {
        (Some(_), _) => Setpoints::Topic,
        (None, true) => Setpoints::ByHand(steer_from_stdin),
        (None, false) => Setpoints::Timeline(timeline),
    };
    let links =
        Links { recording, setpoints: sender, tune: args.tune.clone(), virtual_time: args.virtual_time };
    let links = links.is_any().then_some(links);

    // The motion of the gimbal if every task ran exactly on time; with setpoints by hand it is
    // known only afterwards.
    let ideal = |seconds, source| {
        let config = Config::new().virtual_time();
        controller::run(config, bus::simulated(), seconds, source, None).map(|outcome| outcome.record)
    };
    let mut reference = match &source {
        Setpoints::Timeline(_) if !args.virtual_time => ideal(args.seconds, source.clone())?,
        _ => None,
    };
    let started = SystemTime::now();
    let config = if args.virtual_time {
        Config::new().virtual_time()
    } else {
        announce(args.seconds);
        Config::from_env()
    };
    let outcome = controller::run(config, gimbal, args.seconds, source, links)?;
    if let Some(record) = &outcome.record
        && reference.is_none()
        && !args.virtual_time
    {
        // No longer than the run, which may have been ended early.
        let elapsed = outcome.report.elapsed.as_secs_f64() + 0.001;
        let followed = Setpoints::Timeline(as_recorded(&record.recorder));
        reference = ideal(elapsed.min(args.seconds), followed)?;
    }
    finish(args, &outcome, reference.as_ref().map(|r| &r.recorder), &setpoints, started)
}

fn setpoints(args: &Args) -> Result<(Timeline, String), Failure> {
    let ranges = GIMBAL.map(|axis| axis.range);
    if let Some(path) = &args.setpoints {
        let timeline = read_file(path, ranges).map_err(Failure::input)?;
        return Ok((timeline, path.display().to_string()));
    }
    if let Some(address) = args.udp {
        return Ok((Timeline::new(), format!("datagrams at {address}")));
    }
    if args.transports {
        return Ok((Timeline::new(), "transports, /setpoint".into()));
    }
    match (args.stdin, args.virtual_time) {
        (false, _) => Ok((Timeline::built_in(args.seconds), "built-in step sequence".into())),
        (true, false) => Ok((Timeline::new(), "standard input".into())),
        // In virtual time no line can arrive during the run: all of them are read first.
        (true, true) => {
            let mut parser = LineParser::new("standard input", ranges);
            let mut timeline = Timeline::new();
            for line in std::io::stdin().lock().split(b'\n') {
                let line = line.map_err(Failure::other)?;
                if let Some(setpoint) = parser.parse(&line).map_err(Failure::input)? {
                    let latest = timeline.end_ns() as f64 / 1e9;
                    timeline.push(setpoint.time_s.unwrap_or(latest).max(latest), setpoint.angles_rad);
                }
            }
            Ok((timeline, "standard input".into()))
        }
    }
}

/// Binds before anything moves, because the port may be in use.
fn bind(address: SocketAddr) -> Result<UdpSocket, Failure> {
    let advice = "give another: --udp=ADDRESS:PORT";
    let socket = UdpSocket::bind(address)
        .map_err(|error| Failure::other(format!("--udp: {address}: {error}; {advice}")))?;
    let address = socket.local_addr().map_err(Failure::other)?;
    print_line(format_args!("gimbal: listening for setpoints at {address}"));
    Ok(socket)
}

/// Forwards lines to the controller as they arrive, on an ordinary thread that ends with the
/// process.
fn steer_from_stdin() {
    let mut parser = LineParser::new("standard input", GIMBAL.map(|axis| axis.range));
    for line in std::io::stdin().lock().split(b'\n') {
        let parsed = match line {
            Ok(line) => parser.parse(&line),
            Err(error) => return print_line(format_args!("gimbal: standard input: {error}")),
        };
        match parsed {
            Ok(None) => {}
            Ok(Some(setpoint)) => {
                if !controller::steer(setpoint.time_s, setpoint.angles_rad) {
                    print_line(format_args!(
                        "gimbal: a setpoint was dropped: 64 are already waiting, or the run has ended"
                    ));
                }
            }
            // The gimbal keeps its position; the next line may be valid.
            Err(error) => print_line(format_args!("gimbal: {error}")),
        }
    }
}

/// Returns the setpoints as they were followed, for a reference computed afterwards.
fn as_recorded(recorder: &Recorder) -> Timeline {
    let mut timeline = Timeline::new();
    let mut last = None;
    for sample in recorder.samples() {
        if last != Some(sample.setpoint_rad) {
            timeline.push(sample.t_ns as f64 / 1e9, sample.setpoint_rad);
            last = Some(sample.setpoint_rad);
        }
    }
    timeline
}

fn announce(seconds: f64) {
    if std::io::stderr().is_terminal() {
        print_line(format_args!(
            "gimbal: controlling two axes at 10 kHz for {seconds} s; Ctrl-C ends it early"
        ));
    }
}

fn finish(
    args: &Args,
    outcome: &Outcome,
    reference: Option<&Recorder>,
    setpoints: &str,
    started: SystemTime,
) -> Result<ExitCode, Failure> {
    if let Some(Some(Err(error))) = outcome.record.as_ref().map(|record| &record.topics) {
        return Err(Failure::other(error));
    }
    let report = &outcome.report;
    let mut text = report.to_string();
    if let Some(record) = &outcome.record {
        let link = record.link;
        let summary =
            summary::of(&Run { report, record: &record.recorder, link, reference, setpoints, started });
        text.push_str(&motion(&summary.step));
        let lost =
            link.lost_feedback + link.lost_commands + link.crc_errors + link.format_errors + link.bus_errors;
        let [exchanges, lost] = [link.exchanges, lost].map(format_count);
        text.push_str(&format!("SPI: {exchanges} exchanges, {lost} lost or damaged\n"));
        if let Some(Ok(report)) = &record.topics {
            text.push_str(&format!("\nTopics:\n{report}"));
        }
        let path = args.report.clone().unwrap_or_else(default_report);
        write(&path, &to_html(&summary))?;
        let shown = path.canonicalize().unwrap_or(path);
        text.push_str(&format!("\nThe report with the step response is in {}\n", shown.display()));
        if let Some(path) = &args.json {
            write(path, &to_json(&summary).map_err(Failure::other)?)?;
        }
    }
    let printed = print(&text);
    if let Err(error) = &printed {
        print_line(format_args!("gimbal: standard output: {error}; the output is incomplete"));
    }
    let is_incomplete = |topics: &Result<_, _>| !topics.as_ref().is_ok_and(Carried::is_complete);
    let record = outcome.record.as_ref();
    let is_incomplete = record.and_then(|record| record.topics.as_ref()).is_some_and(is_incomplete);
    match record.is_some_and(|record| record.gave_up) {
        true => Err(Failure::other(gave_up(args))),
        false if printed.is_err() || is_incomplete => Ok(report.exit_code().max(1).into()),
        false => Ok(report.exit_code().into()),
    }
}

fn gave_up(args: &Args) -> String {
    let what = "the bus failed 100 times in a row, and the controller gave up";
    match &args.spi {
        Some(device) => format!("{what}; is the gimbal at {} still on?", device.display()),
        None => what.to_owned(),
    }
}

fn motion(step: &StepResponse) -> String {
    let mut text = String::from("\n");
    for axis in &step.axes {
        if let (Some(max), Some(rms)) = (axis.residual_max_urad, axis.residual_rms_urad) {
            text.push_str(&format!(
                "{}: at most {} from the virtual-time reference, RMS {}\n",
                axis.name,
                format_urad(max),
                format_urad(rms)
            ));
        } else if let Some(step) = axis.first_step() {
            let settled = match step.settled_ns {
                Some(ns) => format!("within 2 % after {:.0} ms", ns as f64 / 1e6),
                None => "not within 2 % before the next step".to_owned(),
            };
            let (target, overshoot) = (step.target_rad, step.overshoot * 100.0);
            text.push_str(&format!(
                "{}: first step, to {target:.3} rad: {settled}, overshoot {overshoot:.1} %\n",
                axis.name
            ));
        }
    }
    text
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    punctual_files::write(path, text.as_bytes())
        .map_err(|error| Failure::other(format!("writing {}: {error}", path.display())))
}

/// Prints to standard output without the panic of `println!`. Returns an error if it cannot be
/// written to, as on a full disk. A closed pipe, as by `| head`, is not an error.
fn print(text: &str) -> io::Result<()> {
    flush(io::stdout().write_all(text.as_bytes()))
}

/// Flushes standard output after writing to it. The errors are those of [`print()`].
fn flush(written: io::Result<()>) -> io::Result<()> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints a line to standard error, and ignores errors, on which `eprintln!` panics.
pub fn print_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

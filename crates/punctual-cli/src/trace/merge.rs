//! Recordings as files: `punctual trace convert` repairs one; `punctual trace merge` and `punctual
//! trace exchange` make one of those of several machines.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_files::NewFile;
use punctual_report::format::{format_counted, format_nanos, format_significant};
use punctual_trace::machines::{self, Relation, THREADS, exchange};
use punctual_trace::write::{WriteError, dat};

use super::args::{Convert, Exchange, Merge};
use super::outputs::identity;
use super::{FAILED, Failure, open};
use crate::output::{message, unwritable};

/// Interval of messages to another machine.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) fn merge(arguments: &Merge) -> Result<u8, Failure> {
    let Merge { traces, output, shared_clock } = arguments;
    check_output(output, traces, "an input")?;
    let opened = traces.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let relation = shared_clock.map_or(Relation::Messages, Relation::Shared);
    let merged = machines::merge(&opened, relation, output)?;
    merged.damage.iter().for_each(|what| message!("warning: {what}"));
    for (index, (path, clocks)) in (1..).zip(traces[1..].iter().zip(&merged.clocks)) {
        let uncertainty = format_nanos(clocks.uncertainty() as f64);
        let path = path.display();
        let relation = match shared_clock {
            Some(_) => format!("its clock is shared, ± {uncertainty}"),
            None => {
                let (side, ns) = match clocks.ahead() {
                    ns if ns < 0 => ("behind", -ns),
                    ns => ("ahead", ns),
                };
                format!(
                    "its clock is {} {side} and gains {} ppm; its times are right to ± {uncertainty}, by {}",
                    format_nanos(ns as f64),
                    format_significant(clocks.drift_ppm()),
                    format_counted(clocks.messages() as u64, "message")
                )
            }
        };
        message!("{path}: {relation}; its threads have numbers {} higher", THREADS * index);
    }
    if merged.shift > 0 {
        message!(
            "all times are {} later than by the clock of {}, because another recording began before that clock did",
            format_nanos(merged.shift as f64),
            traces[0].display()
        );
    }
    print_size(output)?;
    Ok(0)
}

pub(crate) fn exchange(arguments: &Exchange) -> Result<u8, Failure> {
    let path = marker();
    let opened = File::options().write(true).open(&path);
    let marker = opened.map_err(|error| {
        format!(
            "{}: {error}; messages are marked there. Run this as root, while the recording runs: best as its command, `punctual \
             trace record -- punctual trace exchange …`",
            path.display()
        )
    })?;
    let count = match (&arguments.listen, &arguments.to) {
        (Some(address), _) => {
            let socket = UdpSocket::bind(address).map_err(|error| format!("--listen {address}: {error}"))?;
            exchange::listen(&socket, &marker)?
        }
        (None, Some(address)) => exchange::run(address, &marker, arguments.count, MESSAGE_INTERVAL)
            .map_err(|error| format!("{address}: {error}"))?,
        (None, None) => unreachable!("the command line has one of the two"),
    };
    message!("{} answered", format_counted(count, "message"));
    Ok(if count > 0 { 0 } else { FAILED })
}

/// Returns the file that the recorder names for its command, or that of every system.
pub(crate) fn marker() -> PathBuf {
    let named = std::env::var_os("PUNCTUAL_TRACE").map(PathBuf::from).filter(|path| path.is_absolute());
    named.unwrap_or_else(|| {
        let directories = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
        let there = directories.iter().find(|place| place.join("trace_marker_raw").exists());
        there.unwrap_or(&directories[0]).join("trace_marker_raw")
    })
}

/// Makes a trace.dat of what an interrupted recording left, or of a damaged file.
pub(crate) fn convert(arguments: &Convert) -> Result<u8, Failure> {
    let Convert { input, output, remove } = arguments;
    let found = fs::metadata(input);
    let found = found.map_err(|error| {
        Failure::usage(format!(
            "{}: {error}; give a trace.dat, or the directory of a recording",
            input.display()
        ))
    })?;
    check_output(output, std::slice::from_ref(input), "the input")?;
    let is_directory = found.is_dir();
    if *remove && !is_directory {
        return Err(Failure::usage(format!(
            "--remove: {} is not a directory; remove it by hand",
            input.display()
        )));
    }
    if is_directory && !input.join("events").is_dir() {
        // The error states what the directory of a recording contains.
        open(input)?;
    }
    match (is_directory, remove) {
        (true, true) => dat::finish(input, output)?,
        (true, false) => dat::write(input, output)?,
        (false, _) => {
            let damage = punctual_trace::convert(input, output).map_err(|error| match error {
                WriteError::Unreadable(_) => Failure::usage(error.to_string()),
                error => error.into(),
            })?;
            damage.iter().for_each(|what| message!("warning: {}: {what}", input.display()));
        }
    }
    print_size(output)?;
    Ok(0)
}

/// Checks that `output` can be created and is none of the inputs, which `what` describes.
fn check_output(output: &Path, inputs: &[PathBuf], what: &str) -> Result<(), Failure> {
    if identity(output).is_some_and(|file| inputs.iter().any(|input| identity(input) == Some(file))) {
        let output = output.display();
        return Err(Failure::usage(format!("--output {output}: this is {what}; choose another name")));
    }
    let created = NewFile::create(output).map(drop);
    created.map_err(|error| Failure::usage(unwritable("--output", output, &error)))
}

/// Prints the size of a complete recording, and how to read it.
fn print_size(output: &Path) -> Result<(), Failure> {
    let bytes = fs::metadata(output)?.len();
    message!(
        "{}: {:.1} MB; print its report: punctual trace report {0}",
        output.display(),
        bytes as f64 / 1e6
    );
    Ok(())
}

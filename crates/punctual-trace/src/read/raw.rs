//! A directory with the content of tracefs: format files and the pages of each CPU, under the names
//! that tracefs has for them.
//!
//! A recording writes this first, and it remains if the recorder is killed or the disk is full. A
//! manual copy can be read as well. Only `events/header_page`, one `events/GROUP/EVENT/format` and
//! one `per_cpu/cpuN/trace_pipe_raw` are required; `events/header_event`, `saved_cmdlines`,
//! `trace_clock`, `kallsyms`, `uname` and `per_cpu/cpuN/stats` are used if they exist. Further
//! buffers are in `instances/NAME`, each with its own `per_cpu`.
//!
//! ```no_run
//! use punctual_trace::read::Trace;
//!
//! let trace = Trace::open("trace.dat.raw".as_ref())?;
//! assert!(trace.cpus() > 0);
//! # Ok::<(), punctual_trace::read::ReadError>(())
//! ```

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::ReadError;
use super::{Buffer, CpuData, Order, Recorder, Trace, dat};
use crate::format::dat::{clock_of, declared};
use crate::format::fields::{EventFormat, FormatError, PageLayout, check_header_event};

/// Descriptions take some KiB, names of threads and functions some MiB.
const FILE_LIMIT: u64 = 64 << 20;

pub(super) fn open(path: &Path) -> Result<Trace, ReadError> {
    let events = path.join("events");
    let Some(header) = optional(&events.join("header_page"))? else {
        return Err(ReadError::NotATraceDirectory { path: path.to_owned() });
    };
    let layout =
        PageLayout::parse(&header, Order::NATIVE).map_err(format_error(&events.join("header_page")))?;
    if let Some(text) = optional(&events.join("header_event"))? {
        check_header_event(&text).map_err(format_error(&events.join("header_event")))?;
    }
    let (formats, unreadable) = formats(&events)?;
    let text = |name: &str| {
        Ok(optional(&path.join(name))?
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default())
    };
    let clock = clock_of(&text("trace_clock")?).to_owned();
    let mut statistics = Vec::new();
    let mut buffers = vec![buffer(path, String::new(), &clock, &mut statistics)?];
    for (name, instance) in entries(&path.join("instances"))? {
        buffers.push(buffer(&instance, name, &clock, &mut statistics)?);
    }
    let file: Arc<str> = path.display().to_string().into();
    if buffers.iter().all(|buffer| buffer.cpus.is_empty()) {
        return Err(ReadError::Empty { file });
    }
    Ok(Trace {
        file,
        layout,
        formats,
        unreadable,
        buffers,
        threads: optional(&path.join("saved_cmdlines"))?.unwrap_or_default(),
        functions: dat::Functions::of(&optional(&path.join("kallsyms"))?.unwrap_or_default()),
        clock,
        system: text("uname")?.trim().to_owned(),
        statistics,
        scale: None,
        declared: optional(&path.join("recorded"))?.map(|text| {
            let beside = |name| optional(&path.join(name)).ok().flatten().unwrap_or_default();
            declared(&text, &beside("saved_tgids"), &beside("saved_reservations"))
        }),
        damage: Vec::new(),
        recorder: Recorder::Punctual,
        other_samples: 0,
    })
}

fn format_error(path: &Path) -> impl Fn(FormatError) -> ReadError {
    let file: Arc<str> = path.display().to_string().into();
    move |error| ReadError::Format { file: file.clone(), offset: 0, error }
}

fn optional(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let failed = |error| ReadError::Open { path: path.to_owned(), error };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut content = Vec::new();
    file.take(FILE_LIMIT).read_to_end(&mut content).map_err(failed)?;
    Ok(Some(content))
}

/// Returns the directories in a directory, by name; none if it does not exist.
fn entries(path: &Path) -> Result<Vec<(String, PathBuf)>, ReadError> {
    let failed = |error| ReadError::Open { path: path.to_owned(), error };
    let directory = match fs::read_dir(path) {
        Ok(directory) => directory,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in directory {
        let entry = entry.map_err(failed)?;
        if entry.path().is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

type Formats = (Vec<EventFormat>, Vec<(String, FormatError)>);

fn formats(events: &Path) -> Result<Formats, ReadError> {
    let (mut formats, mut unreadable) = Formats::default();
    for (system, group) in entries(events)? {
        for (name, event) in entries(&group)? {
            let Some(text) = optional(&event.join("format"))? else { continue };
            match EventFormat::parse(&system, &text) {
                Ok(format) => formats.push(format),
                Err(error) => unreadable.push((format!("{system}:{name}"), error)),
            }
        }
    }
    Ok((formats, unreadable))
}

fn buffer(path: &Path, name: String, clock: &str, statistics: &mut Vec<String>) -> Result<Buffer, ReadError> {
    let mut cpus = Vec::new();
    for (directory, path) in entries(&path.join("per_cpu"))? {
        let Some(cpu) = directory.strip_prefix("cpu").and_then(|number| number.parse().ok()) else {
            continue;
        };
        let data = path.join("trace_pipe_raw");
        let failed = |error| ReadError::Open { path: data.clone(), error };
        let file = match File::open(&data) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        let length = file.metadata().map_err(failed)?.len();
        if let Some(text) = optional(&path.join("stats"))? {
            statistics.push(format!("CPU: {cpu}\n{}", String::from_utf8_lossy(&text).trim_end()));
        }
        if length > 0 {
            let file_name = data.display().to_string().into();
            cpus.push(CpuData {
                cpu,
                file: file_name,
                bytes: Arc::new(file),
                start: 0,
                length,
                packed: None,
            });
        }
    }
    cpus.sort_by_key(|data| data.cpu);
    Ok(Buffer { name, clock: clock.to_owned(), page_size: None, cpus })
}

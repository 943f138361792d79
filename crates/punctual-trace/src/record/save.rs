//! The contents of a capture directory other than pages: formats, names, the clock.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use punctual_files::Directory;
use punctual_process::kernel::Kernel;
use punctual_report::escape::Printable;

use super::addresses;
use super::error::RecordError;
use super::events::SLEEP;
use super::filter::all_threads;
use super::tracefs;
use crate::format::fields::EventFormat;
use crate::read::dat::BUDGET_TIMER;

/// Files of tracefs that are copied.
pub(super) struct Saver<'a> {
    pub(super) tracefs: &'a Path,
    pub(super) directory: &'a Directory,
}

impl Saver<'_> {
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<(), RecordError> {
        self.directory.write(Path::new(name), content).map_err(|error| self.failed(name, error))
    }

    /// Creates a file for pages.
    pub(super) fn create(&self, name: &str) -> Result<File, RecordError> {
        self.directory.create_file(Path::new(name)).map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> RecordError {
        let directory = self.directory.path();
        RecordError::output(directory, &directory.join(name), error)
    }

    fn copy(&self, name: &str) -> Result<(), RecordError> {
        let path = self.tracefs.join(name);
        let content =
            tracefs::content(&path).map_err(|error| RecordError::kernel(&path, "reading", error))?;
        self.write(name, &content)
    }

    /// Saves the layout of pages and of the events of these groups.
    pub(super) fn formats(&self, systems: &[String], calls: bool) -> Result<(), RecordError> {
        self.copy("events/header_page")?;
        self.copy("events/header_event")?;
        for (_, format) in format_files(self.tracefs, systems, calls) {
            self.copy(&format)?;
        }
        Ok(())
    }

    /// Saves the names of all existing threads and those that the kernel remembers, after the
    /// `earlier` names.
    pub(super) fn names(&self, earlier: &mut String) -> Result<(), RecordError> {
        *earlier += &names(self.tracefs);
        // In the format of the kernel's file of this name, which the kernel fills only on request,
        // and too late.
        let processes = all_threads().map(|(thread, process)| format!("{thread} {process}\n"));
        self.write("saved_tgids", processes.collect::<String>().as_bytes())?;
        self.write("saved_cmdlines", earlier.as_bytes())
    }

    /// Saves the clock, the system, and the addresses of functions: all if functions are traced,
    /// otherwise only the one that timers refer to. Returns whether the kernel shows addresses to
    /// the caller; otherwise it shows them as 0, and none is written.
    pub(super) fn rest(&self, clock: &str, functions: bool) -> Result<bool, RecordError> {
        self.write("trace_clock", clock.as_bytes())?;
        let Kernel { system, node, release, machine, .. } = Kernel::running();
        self.write("uname", [system, node, release, machine].join(" ").as_bytes())?;
        let Ok(symbols) = fs::read("/proc/kallsyms") else { return Ok(false) };
        let needed = |line: &&[u8]| {
            let mut words = line.split(u8::is_ascii_whitespace);
            addresses::is_shown(line) && (functions || words.any(|word| word == BUDGET_TIMER))
        };
        let lines: Vec<_> = symbols.split_inclusive(|&byte| byte == b'\n').filter(needed).collect();
        self.write("kallsyms", &lines.concat())?;
        Ok(addresses::are_shown(&symbols))
    }
}

/// Returns the format files of these groups, and those of all system calls if requested, with the
/// name of the group of each, under tracefs.
pub(super) fn format_files<'a>(tracefs: &Path, systems: &'a [String], calls: bool) -> Vec<(&'a str, String)> {
    let mut files = Vec::new();
    for system in systems {
        let group = format!("events/{system}");
        for entry in fs::read_dir(tracefs.join(&group)).into_iter().flatten().flatten() {
            let format = format!("{group}/{}/format", entry.file_name().to_string_lossy());
            // The groups have separate files, and most system calls are otherwise of no use.
            let name = entry.file_name();
            let sleeps = SLEEP.iter().any(|sleep| name.to_str() == Some(sleep));
            let wanted = calls || system != "syscalls" || format.contains("futex") || sleeps;
            if wanted && tracefs.join(&format).is_file() {
                files.push((system.as_str(), format));
            }
        }
    }
    files
}

/// Returns the formats of the events of these groups.
pub(super) fn formats(tracefs: &Path, systems: &[String], calls: bool) -> Vec<EventFormat> {
    let parse =
        |(system, file): (&str, String)| EventFormat::parse(system, &fs::read(tracefs.join(file)).ok()?).ok();
    format_files(tracefs, systems, calls).into_iter().filter_map(parse).collect()
}

/// Returns the names of threads, one per line; of two names of one thread the later one is better.
pub(super) fn names(tracefs: &Path) -> String {
    let mut lines = fs::read_to_string(tracefs.join("saved_cmdlines")).unwrap_or_default();
    for (thread, process) in all_threads() {
        if let Ok(name) = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm")) {
            // A name can contain line breaks; the text after one would name another thread.
            let name = name.strip_suffix('\n').unwrap_or(&name);
            lines += &format!("{thread} {}\n", Printable(name));
        }
    }
    lines
}

//! What a capture directory has beside pages: formats, names, the clock.

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
use crate::read::dat::BUDGET_TIMER;
use crate::read::format::EventFormat;

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

    /// How pages and the events of these groups lie in memory.
    pub(super) fn formats(&self, systems: &[String], calls: bool) -> Result<(), RecordError> {
        self.copy("events/header_page")?;
        self.copy("events/header_event")?;
        for (_, format) in format_files(self.tracefs, systems, calls) {
            self.copy(&format)?;
        }
        Ok(())
    }

    /// The names of all threads that there are and that the kernel remembers, after those that were there earlier.
    pub(super) fn names(&self, earlier: &mut String) -> Result<(), RecordError> {
        *earlier += &names(self.tracefs);
        // As the kernel has it in a file of this name, which it fills only if it is asked to, and too late.
        let processes = all_threads().map(|(thread, process)| format!("{thread} {process}\n"));
        self.write("saved_tgids", processes.collect::<String>().as_bytes())?;
        self.write("saved_cmdlines", earlier.as_bytes())
    }

    /// The clock, the system, and the addresses of functions: all if functions are traced, otherwise the one that timers name.
    /// Returns whether the kernel shows addresses to the caller. It shows them as 0 otherwise, and then none is written.
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

/// The format files of these groups, those of all system calls if they are wanted, with the name of the group each is in, under tracefs.
pub(super) fn format_files<'a>(tracefs: &Path, systems: &'a [String], calls: bool) -> Vec<(&'a str, String)> {
    let mut files = Vec::new();
    for system in systems {
        let group = format!("events/{system}");
        for entry in fs::read_dir(tracefs.join(&group)).into_iter().flatten().flatten() {
            let format = format!("{group}/{}/format", entry.file_name().to_string_lossy());
            // The groups have files of their own, and of system calls most are of no use otherwise.
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

/// The formats of the events of these groups.
pub(super) fn formats(tracefs: &Path, systems: &[String], calls: bool) -> Vec<EventFormat> {
    let parse =
        |(system, file): (&str, String)| EventFormat::parse(system, &fs::read(tracefs.join(file)).ok()?).ok();
    format_files(tracefs, systems, calls).into_iter().filter_map(parse).collect()
}

/// The names of threads, a line each; of two for one thread the later one is the better one.
pub(super) fn names(tracefs: &Path) -> String {
    let mut lines = fs::read_to_string(tracefs.join("saved_cmdlines")).unwrap_or_default();
    for (thread, process) in all_threads() {
        if let Ok(name) = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm")) {
            // A name can have line breaks, and what follows one would name another thread.
            let name = name.strip_suffix('\n').unwrap_or(&name);
            lines += &format!("{thread} {}\n", Printable(name));
        }
    }
    lines
}

//! Constants and texts of trace.dat and of capture directories.

/// Option IDs, which are also those of the sections they point to.
pub(crate) mod id {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const TSC2NSEC: u16 = 14;
    pub(crate) const STRINGS: u16 = 15;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const KALLSYMS: u16 = 19;
    pub(crate) const PRINTK: u16 = 20;
    pub(crate) const CMDLINES: u16 = 21;
}

/// The beginning of the version text of recorders that declare, on the following lines, which
/// events they recorded.
pub(crate) const WRITER: &str = "punctual-trace\n";

/// The clock in use: the one in brackets, or the whole text if none exist.
pub(crate) fn clock_of(text: &str) -> &str {
    let text = text.trim().trim_end_matches('\0');
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(clock, _)| clock)
}

/// Returns the recorder's declaration of its events, of the threads' processes and of their
/// reservations, which is one text in a file.
pub(crate) fn declared(recorded: &[u8], saved_tgids: &[u8], saved_reservations: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(recorded).into_owned();
    for (begin, lines) in [(PROCESS, saved_tgids), (RESERVATION, saved_reservations)] {
        for line in String::from_utf8_lossy(lines).lines() {
            text += &format!("{begin}{line}\n");
        }
    }
    text
}

/// The beginning of a line with the numbers of a thread and of its process.
pub(crate) const PROCESS: &str = "process ";

/// The beginning of a line with the number of a SCHED_DEADLINE thread, its runtime, deadline and
/// period in ns.
pub(crate) const RESERVATION: &str = "reservation ";

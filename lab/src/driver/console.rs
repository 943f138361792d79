//! The guest's console: the start of the command, panics of the kernel, and running out of memory.

/// Printed by the guest's first process when the command starts.
const START: &str = "punctual-lab: start";

/// Printed when the command has ended and host devices are used again.
const END: &str = "punctual-lab: end";

/// Printed by the suite before each case and after the last, followed by the name of the case.
pub(crate) const CASE: &str = "punctual-lab: case ";

/// The number of console lines that an error message shows.
const TAIL: usize = 20;

/// The console output so far.
#[derive(Default)]
pub(crate) struct Console(Vec<u8>);

impl Console {
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).replace('\r', "")
    }

    /// Returns `true` if the command has started.
    pub(crate) fn started(&self) -> bool {
        self.0.windows(START.len()).any(|window| window == START.as_bytes())
    }

    /// Returns the number of cases of the suite that have started, plus one when the last has
    /// ended.
    pub(crate) fn cases(&self) -> usize {
        self.0.windows(CASE.len()).filter(|window| *window == CASE.as_bytes()).count()
    }

    /// Returns the part that must be identical in two runs that count instructions.
    pub(crate) fn counted(&self) -> String {
        let text = self.text();
        text.split(END).next().unwrap_or_default().to_owned()
    }

    /// Returns the line of a kernel panic, with its reason.
    pub(crate) fn panic(&self) -> Option<String> {
        self.line_with(&["Kernel panic - not syncing"])
    }

    /// Returns the line in which the kernel reports that it is out of memory.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        self.line_with(&[
            "Out of memory: Killed process",
            "Out of memory and no killable processes",
            "System is deadlocked on memory",
            "Initramfs unpacking failed: write error",
        ])
    }

    /// Returns the last lines, indented.
    pub(crate) fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return "the console is empty".to_owned();
        }
        let last = &lines[lines.len().saturating_sub(TAIL)..];
        format!("the end of the console:\n    {}", last.join("\n    "))
    }

    fn line_with(&self, signs: &[&str]) -> Option<String> {
        let text = self.text();
        let line = text.lines().find(|line| signs.iter().any(|sign| line.contains(sign)))?;
        // Without the time in brackets.
        Some(line.rsplit_once("] ").map_or(line, |(_, printed)| printed).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> Console {
        let mut console = Console::default();
        console.append(text.as_bytes());
        console
    }

    #[test]
    fn detects_start_in_fragments() {
        let mut console = console("[    1.0] x\r\npunctual-lab: st");
        assert!(!console.started());
        console.append(b"art\r\n");
        assert!(console.started());
    }

    #[test]
    fn counts_cases() {
        let mut console = console("punctual-lab: start\r\npunctual-lab: case stress\r\npunctual-lab: ca");
        assert_eq!(console.cases(), 1);
        console.append(b"se \r\n");
        assert_eq!(console.cases(), 2);
    }

    #[test]
    fn distinguishes_panic_from_other_messages() {
        let panic = console("[ 2.1] Kernel panic - not syncing: sysrq triggered crash\r\n[ 2.2] CPU: 0\r\n");
        assert_eq!(panic.panic().unwrap(), "Kernel panic - not syncing: sysrq triggered crash");
        assert_eq!(panic.out_of_memory(), None);
        let memory = console("[ 3.0] Out of memory: Killed process 60 (tail) total-vm:1kB\r\n");
        assert!(memory.out_of_memory().unwrap().starts_with("Out of memory: Killed process 60"));
        assert_eq!(memory.panic(), None);
    }

    #[test]
    fn shows_only_last_lines() {
        let many: String = (0..50).map(|n| format!("line {n}\r\n")).collect();
        let tail = console(&many).tail();
        assert!(tail.contains("line 49") && tail.contains("line 30") && !tail.contains("line 29"), "{tail}");
        assert_eq!(console("\r\n").tail(), "the console is empty");
    }
}

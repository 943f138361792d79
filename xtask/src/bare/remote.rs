//! The debugger's side of GDB's remote protocol, as far as it is used with QEMU: memory, the
//! program counter, and running to an address.
//!
//! *Debugging with GDB*, appendix E.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::board::Architecture;
use crate::Result;

/// The time limit for an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// Bytes per request.
const CHUNK: usize = 1024;

/// A halted machine.
pub(super) struct Remote<S = UnixStream> {
    stream: S,
    architecture: Architecture,
}

impl Remote {
    pub(super) fn connect(socket: &Path, architecture: Architecture) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER))?;
        Ok(Self { stream, architecture })
    }
}

impl<S: Read + Write> Remote<S> {
    /// Returns the content of memory.
    pub(super) fn memory(&mut self, address: u64, size: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(size);
        while bytes.len() < size {
            let (at, next) = (address + bytes.len() as u64, CHUNK.min(size - bytes.len()));
            let read = self.numbers(&format!("m{at:x},{next:x}"))?;
            if read.len() != next {
                return Err(format!("of {next} bytes at {at:#x} {} can be read", read.len()).into());
            }
            bytes.extend(read);
        }
        Ok(bytes)
    }

    /// Runs the machine until a core is about to execute the instruction at `address`; returns the
    /// address at which it has stopped.
    pub(super) fn run_to(&mut self, address: u64) -> Result<u64> {
        self.succeed(&format!("Z1,{address:x},4"))?;
        let stop = self.ask("c")?;
        if !stop.starts_with('T') && !stop.starts_with('S') {
            return Err(format!("QEMU stops by {stop:?}").into());
        }
        self.succeed(&format!("z1,{address:x},4"))?;
        let number = match self.architecture {
            Architecture::Armv7 => 15,
            Architecture::Aarch64 => 32,
        };
        let counter = self.numbers(&format!("p{number:x}"))?;
        Ok(counter.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Resumes the machine without a breakpoint.
    pub(super) fn go_on(&mut self) -> Result {
        self.succeed("D")
    }

    fn succeed(&mut self, command: &str) -> Result {
        match self.ask(command)?.as_str() {
            "OK" => Ok(()),
            answer => Err(format!("QEMU answers {command:?} by {answer:?}").into()),
        }
    }

    fn numbers(&mut self, command: &str) -> Result<Vec<u8>> {
        let answer = self.ask(command)?;
        let pairs = answer.as_bytes().chunks(2).map(|pair| match pair.len() {
            2 => u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok(),
            _ => None,
        });
        let bytes = pairs.collect::<Option<_>>();
        Ok(bytes.ok_or_else(|| format!("QEMU answers {command:?} by {answer:?}"))?)
    }

    /// Sends a command; returns the answer.
    fn ask(&mut self, command: &str) -> Result<String> {
        write!(self.stream, "${command}#{:02x}", sum(command.as_bytes()))?;
        self.stream.flush()?;
        // The acknowledgment, and any other bytes before the answer.
        while self.byte()? != b'$' {}
        let mut answer = Vec::new();
        loop {
            match self.byte()? {
                b'#' => break,
                byte => answer.push(byte),
            }
        }
        let said = [self.byte()?, self.byte()?];
        if said != *format!("{:02x}", sum(&answer)).as_bytes() {
            return Err(format!("a garbled answer to {command:?}").into());
        }
        self.stream.write_all(b"+")?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).map_err(|error| format!("no answer from QEMU: {error}"))?;
        Ok(byte[0])
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum: u8, &byte| sum.wrapping_add(byte))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Sends its answers regardless of the requests.
    struct Script {
        answers: io::Cursor<Vec<u8>>,
        asked: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answers.read(buffer)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn remote(answers: &str) -> Remote<Script> {
        let stream = Script { answers: io::Cursor::new(answers.into()), asked: vec![] };
        Remote { stream, architecture: Architecture::Aarch64 }
    }

    #[test]
    fn reads_memory_and_program_counter() {
        let mut reads = remote("+$01ff#2d");
        assert_eq!(reads.memory(0x8000, 2).unwrap(), [1, 0xFF]);
        assert_eq!(reads.stream.asked, b"$m8000,2#93+");
        let mut runs = remote("+$OK#9a+$T05thread:01;#07+$OK#9a+$0000080000000000#08");
        assert_eq!(runs.run_to(0x8_0000).unwrap(), 0x8_0000);
    }

    #[test]
    fn rejects_error_replies_and_truncated_memory() {
        let error = |answers: &str| remote(answers).memory(0, 2).unwrap_err().to_string();
        assert_eq!(error("+$E14#aa"), "QEMU answers \"m0,2\" by \"E14\"");
        assert_eq!(error("+$01#61"), "of 2 bytes at 0x0 1 can be read");
        assert!(error("+$01ff#00").contains("garbled"));
        assert!(error("+$01").contains("no answer"));
    }
}

//! A program on a board that QEMU emulates.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_process::child::{BoundedChild, BoundedCommand};

use super::board::Board;
use super::elf::Elf;
use crate::process::{self, Outcome, RUN_LIMIT, TOOL_LIMIT};
use crate::{Result, cargo};

/// Each instruction takes a nanosecond, and sleeping takes no host time.
const COUNTED: [&str; 2] = ["-icount", "shift=0,sleep=off"];

/// The time QEMU may take to open its terminal or its socket.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A board with a program on it.
pub(super) struct Machine {
    board: Board,
    /// The file that QEMU starts.
    kernel: PathBuf,
    elf_path: PathBuf,
    elf: Elf,
}

impl Machine {
    pub(super) fn new(board: Board, path: &Path) -> Result<Self> {
        let elf = Elf::for_board(board, path)?;
        let mut kernel = path.to_owned();
        if board.boots_image {
            kernel = path.with_extension(format!("{board}.img"));
            fs::write(&kernel, &elf.image)?;
        }
        Ok(Self { board, kernel, elf_path: path.to_owned(), elf })
    }

    /// Returns whether the installed QEMU has the board.
    ///
    /// # Errors
    /// Returns an error if QEMU is not installed.
    pub(super) fn exists(board: Board) -> Result<bool> {
        let emulator = board.emulator();
        let output = Command::new(emulator).args(["-machine", "help"]).output_within(TOOL_LIMIT);
        let output = output.map_err(|error| cannot_run(emulator, &error))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        Ok(listed.lines().any(|line| line.split_whitespace().next() == Some(board.machine.as_str())))
    }

    pub(super) fn elf(&self) -> &Elf {
        &self.elf
    }

    fn command(&self, options: &[String]) -> Command {
        let mut command = board_alone(self.board);
        command.args(["-semihosting", "-kernel"]).arg(&self.kernel).args(options);
        command
    }

    /// Runs the program on the host's clock or on counted time, with the standard input and output
    /// of this process.
    pub(super) fn interact(&self, options: &[String], counted: bool) -> Result<ExitCode> {
        let mut command = self.command(options);
        if counted {
            command.args(COUNTED);
        }
        let mut child = start(command.args(["-serial", "stdio"]).stdout(Stdio::piped()))?;
        let mut pipe = child.stdout.take().expect("it is piped");
        let mut annotator = Annotator::new(&self.elf);
        let mut buffer = [0; 4096];
        loop {
            match pipe.read(&mut buffer)? {
                0 => break,
                read => {
                    let mut out = io::stdout().lock();
                    out.write_all(&annotator.annotate(&buffer[..read]))?;
                    out.flush()?;
                }
            }
        }
        let code = child.status_within(TOOL_LIMIT)?.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }

    /// Runs the program on the host's clock while `user` uses its UART, a pseudo terminal.
    pub(super) fn with_line(&self, user: impl FnOnce(&Path) -> Result) -> Result {
        on_terminal(self.command(&[]), user)
    }

    /// Runs the program halted at its first instruction, with gdb attached. If there are
    /// `commands`, gdb executes them and then ends. The output of the board's UART goes to a file
    /// next to the program.
    pub(super) fn debug(&self, options: &[String], commands: &[String]) -> Result<ExitCode> {
        let directory = crate::scratch::Scratch::new("bare-debug")?;
        let socket = directory.path().join("gdb");
        let output = self.elf_path.with_extension("uart");
        let mut board = self.command(options);
        board.args(["-serial", &format!("file:{}", output.display())]);
        let gdb = format!("socket,id=gdb,path={},server=on,wait=off", socket.display());
        board.args(["-S", "-chardev", &gdb, "-gdb", "chardev:gdb"]);
        let mut board = start(board.stdin(Stdio::null()))?;
        let mut gdb = Command::new("gdb-multiarch");
        gdb.args(["--quiet", "--nx"]).arg(&self.elf_path);
        gdb.args(["-ex", "set confirm off", "-ex", &format!("target remote {}", socket.display())]);
        if !commands.is_empty() {
            gdb.arg("--batch");
        }
        for command in commands {
            gdb.args(["-ex", command]);
        }
        // Without commands, a person debugs.
        let limit = if commands.is_empty() { RUN_LIMIT } else { TOOL_LIMIT };
        println!("UART: {}", output.display());
        let ended = wait_for(&socket).and_then(|()| {
            gdb.status_within(limit).map_err(|error| {
                format!("cannot run gdb-multiarch: {error}; install the package of that name").into()
            })
        });
        board.end_at_once()?;
        Ok(if ended?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Runs the program on counted time: each instruction takes a nanosecond, and sleeping takes no
    /// host time, so every run is the same. The program receives `input` as fast as it reads it.
    pub(super) fn run_counted(
        &self,
        options: &[String],
        input: Option<&str>,
        limit: Duration,
    ) -> Result<Outcome> {
        let mut command = self.command(options);
        command.args(COUNTED);
        if let Some(input) = input {
            let path = self.kernel.with_extension("input");
            fs::write(&path, input)?;
            let path = path.display();
            command.args(["-chardev", &format!("file,id=uart,path=/dev/stdout,input-path={path}")]);
            command.args(["-serial", "chardev:uart"]);
        } else {
            command.args(["-serial", "stdio"]);
        }
        let mut outcome = process::capture(&mut command, limit)?;
        outcome.stdout =
            String::from_utf8_lossy(&Annotator::new(&self.elf).annotate(outcome.stdout.as_bytes()))
                .into_owned();
        Ok(outcome)
    }
}

fn cannot_run(emulator: &str, error: &io::Error) -> String {
    format!("cannot run {emulator}: {error}; `bash .ci/packages.sh --bare` installs it")
}

/// Starts QEMU.
fn start(command: &mut Command) -> Result<Child> {
    let child = command.spawn();
    Ok(child.map_err(|error| cannot_run(&command.get_program().to_string_lossy(), &error))?)
}

/// Returns the command for a board on which nothing is loaded.
fn board_alone(board: Board) -> Command {
    let mut command = Command::new(board.emulator());
    command.args(["-machine", &board.machine]);
    if let Some(cpu) = &board.cpu {
        command.args(["-cpu", cpu]);
    }
    command.args(["-display", "none", "-monitor", "none"]).current_dir(cargo::root());
    command
}

/// Returns the content of memory before the first instruction of a board with the options `load`.
pub(super) fn loaded(board: Board, load: &[String], address: u64, size: usize) -> Result<Vec<u8>> {
    let directory = crate::scratch::Scratch::new("bare-memory")?;
    let file = directory.path().join("memory");
    let mut command = board_alone(board);
    command.args(load).args(["-S", "-serial", "null", "-monitor", "stdio"]);
    let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::null()))?;
    let mut monitor = child.stdin.take().expect("it is piped");
    let written = writeln!(monitor, "pmemsave {address:#x} {size} \"{}\"\nquit", file.display());
    let ended = child.status_within(TOOL_LIMIT);
    child.end_at_once()?;
    written?;
    ended?;
    Ok(fs::read(file)?)
}

/// Runs a board with the options `load` until it prints a line with the text `expected`.
pub(super) fn prints(board: Board, load: &[String], expected: &str, limit: Duration) -> Result {
    let mut command = board_alone(board);
    command.args(load).args(["-serial", "stdio"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = start(&mut command)?;
    let lines = process::lines(child.stdout.take().expect("it is piped"));
    let deadline = Instant::now() + limit;
    let next = || lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    let printed = std::iter::from_fn(next).any(|line| line.contains(expected));
    child.end_at_once()?;
    if printed { Ok(()) } else { Err(format!("the output does not contain {expected:?}").into()) }
}

/// Runs QEMU while `user` uses the board's UART, a pseudo terminal.
fn on_terminal(mut command: Command, user: impl FnOnce(&Path) -> Result) -> Result {
    let mut child = start(command.args(["-serial", "pty"]).stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let stdout = child.stdout.take().expect("it is piped");
    let stdout = process::lines(stdout);
    // QEMU prints "char device redirected to /dev/pts/1 (label serial0)".
    let used = stdout.recv_timeout(START_LIMIT).map_err(Into::into).and_then(|text| {
        let line = text.split_whitespace().find(|word| word.starts_with("/dev/"));
        user(Path::new(line.ok_or_else(|| format!("QEMU names no terminal: {text:?}"))?))
    });
    child.end_at_once()?;
    used
}

/// Waits until QEMU listens.
fn wait_for(socket: &Path) -> Result {
    let deadline = Instant::now() + START_LIMIT;
    while Instant::now() < deadline {
        if socket.exists() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(format!("QEMU does not start within {} s", START_LIMIT.as_secs()).into())
}

/// Adds function names to the return addresses that a program prints, each on a separate line.
struct Annotator<'a> {
    elf: &'a Elf,
    /// The part of the current line received so far.
    line: Vec<u8>,
}

impl<'a> Annotator<'a> {
    fn new(elf: &'a Elf) -> Self {
        Self { elf, line: Vec::new() }
    }

    fn annotate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut annotated = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if byte == b'\r' || byte == b'\n' {
                if let Some(name) = self.function() {
                    annotated.extend_from_slice(format!(" in {name}").as_bytes());
                }
                self.line.clear();
            } else {
                self.line.push(byte);
            }
            annotated.push(byte);
        }
        annotated
    }

    /// Returns the function that the line refers to, if the line is a return address.
    fn function(&self) -> Option<&'a str> {
        let digits = std::str::from_utf8(&self.line).ok()?.strip_prefix("    0x")?;
        self.elf.function_before(u64::from_str_radix(digits, 16).ok()?)
    }
}

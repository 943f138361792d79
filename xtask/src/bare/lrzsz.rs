//! The boot loader and its sender, tested against `sx` and `rx` of lrzsz.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_process::child::{BoundedChild, BoundedCommand};

use super::board::Board;
use super::emulator::Machine;
use super::load::{self, Serial};
use super::test::{LOAD_LIMIT, greeting, hello};
use super::toolchain;
use crate::Result;
use crate::process::TOOL_LIMIT;
use crate::scratch::Scratch;

/// The name of this check in the list of programs.
pub(super) const NAME: &str = "lrzsz";

/// The number of transfers in which the loader's warning has to arrive once.
const ATTEMPTS: u32 = 3;

/// The padding of the last block.
const FILLER: u8 = 0x1A;

/// Lets `sx` send `hello` to the boot loader over QEMU's serial line, in blocks of both sizes, and
/// `rx` receive it from the sender of this project.
pub(super) fn check(board: Board) -> Result {
    if let Err(error) = Command::new("sx").arg("--version").output_within(TOOL_LIMIT)
        && error.kind() == io::ErrorKind::NotFound
    {
        println!(
            "\n*** {board}: SKIPPED, lrzsz is not installed: `bash .ci/packages.sh --bare` does that ***"
        );
        return Ok(());
    }
    let scratch = Scratch::new("bare-lrzsz")?;
    let (sent, received) = (scratch.path().join("sent"), scratch.path().join("received"));
    let image = hello(board)?;
    fs::write(&sent, &image)?;
    let loader = Machine::new(board, &toolchain::build_loader(board)?)?;
    for blocks in [&["--1k"][..], &[]] {
        let mut is_warned = false;
        // `sx` discards what arrives before it has restored the terminal, at times the warning.
        for _ in 0..ATTEMPTS {
            loader.with_line(|line| {
                is_warned = send(line, blocks, &sent, &greeting(board))?;
                Ok(())
            })?;
            if is_warned {
                break;
            }
        }
        if !is_warned {
            return Err("the loader does not warn of a missing trailer".into());
        }
    }
    receive(&image, &received)
}

/// Lets `sx` send to the loader at the other end of `line`, which enters the received image.
/// Returns whether the loader's warning of the missing trailer has arrived.
fn send(line: &Path, blocks: &[&str], file: &Path, greeting: &str) -> Result<bool> {
    // Kept open because QEMU drops output that no process reads.
    let terminal = load::open(line)?;
    let mut sx = Command::new("sx");
    sx.arg("--quiet").args(blocks).arg(file);
    sx.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(Stdio::piped());
    let ended = sx.spawn()?.output_within(LOAD_LIMIT)?;
    if !ended.status.success() {
        let printed = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("sx {blocks:?}: {}\n{printed}", ended.status).into());
    }
    let mut board = Serial::of(terminal.try_clone()?, terminal);
    let printed = board.wait_for(greeting, LOAD_LIMIT)?;
    Ok(printed.contains("warning: no trailer"))
}

/// Lets `rx` receive from the sender of this project.
fn receive(image: &[u8], file: &Path) -> Result {
    let mut rx = Command::new("timeout");
    rx.arg(LOAD_LIMIT.as_secs().to_string()).args(["rx", "--quiet", "--with-crc"]).arg(file);
    let mut rx = rx.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdin, stdout) = (rx.stdin.take().expect("it is piped"), rx.stdout.take().expect("it is piped"));
    let sent = load::send(&mut Serial::of(stdout, stdin), image, |_| ());
    // `timeout` ends it before.
    let ended = rx.output_within(LOAD_LIMIT * 2)?;
    sent?;
    if !ended.status.success() {
        return Err(format!("rx: {}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr)).into());
    }
    let received = fs::read(file)?;
    let rest = received.strip_prefix(image).ok_or("rx has received something else")?;
    let is_filler = rest.iter().all(|&byte| byte == FILLER);
    if is_filler { Ok(()) } else { Err("rx has received more than was sent".into()) }
}
